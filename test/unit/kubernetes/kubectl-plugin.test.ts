/** The commands of `kubectl headroom` over an API server in memory, with an operator. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { examine } from '../../../cli/kubectl/doctor.ts'
import { explainPod } from '../../../cli/kubectl/explain.ts'
import { faultOf } from '../../../cli/kubectl/kubectl-api.ts'
import { printNodes } from '../../../cli/kubectl/nodes.ts'
import { releasePod, type ReleaseHow } from '../../../cli/kubectl/release.ts'
import { clusterText } from '../../../cli/kubectl/whatif.ts'
import { DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../operator/admission/admit-pod.ts'
import { webhookConfigurations } from '../../../operator/admission/webhook-configurations.ts'
import { customResourceDefinitions } from '../../../operator/contract/crd.ts'
import type { OwnerReference, Pod } from '../../../operator/contract/kubernetes.ts'
import {
  ADMITTED_CONDITION,
  CLASS_LABEL,
  GROUP_LABEL,
  NODE_LABELS,
  POD_ANNOTATIONS,
} from '../../../operator/contract/names.ts'
import { GPU_NODE } from '../../../operator/contract/policies.ts'
import {
  DAEMON_SETS,
  DEPLOYMENTS,
  type KubeApi,
  KubeError,
  type KubeObject,
  LEASES,
  MUTATING_WEBHOOKS,
  NAMESPACES,
  NODES,
  ownResource,
  PODS,
  PRIORITY_CLASSES,
  RESOURCE_DEFINITIONS,
  RUNTIME_CLASSES,
  VALIDATING_WEBHOOKS,
} from '../../../operator/ports/kube-api.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
const NOW = Date.parse('2026-11-27T10:00:00Z')
let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

const written = () => {
  const out = { text: '', write: (text: string) => (out.text += text) }
  return out
}
const reason = (name: string, wanted: string): Promise<void> =>
  vi.waitFor(async () => {
    const { status } = await world.pod(name)
    const found = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
    if (found?.reason !== wanted) throw new Error(JSON.stringify(found))
  }, WAIT)
async function explained(name: string): Promise<string> {
  const out = written()
  const how = { namespace: 'default', output: 'table' as const, now: NOW, out }
  expect(await explainPod(world.api, name, how)).toBe(0)
  return out.text
}

describe('explain', () => {
  it('says what a waiting pod waits for and what is free, and where a bound pod is', async () => {
    await world.addNode('a', 24 * GIB)
    await world.addNode('b', 12 * GIB)
    await world.api.patch(NODES, { name: 'b' }, { type: 'merge', body: { spec: { unschedulable: true } } })
    world.start()
    await world.addPod('first', '20Gi')
    await reason('first', 'Bound')
    await world.addPod('second', '8Gi')
    await reason('second', 'WaitingForVRAM')
    const waiting = await explained('pod/second')
    expect(waiting).toMatch(/^pod +default\/second\nstate +waits for VRAM/)
    expect(waiting).toMatch(/why +Waiting for [^\n]*8 GiB|why +Waiting for [^\n]*8,192 MiB/)
    expect(waiting).toMatch(/requests +8Gi on one GPU, P2, may be swapped out/)
    await vi.waitFor(
      async () =>
        expect(await explained('second')).toMatch(/nodes +a: 4Gi free on the GPU with the most free VRAM\n$/),
      WAIT,
    )
    expect(await explained('first')).toMatch(/state +is in VRAM on a /)
    await vi.waitFor(
      async () =>
        expect(await explained('first')).toMatch(
          /GPUs +a-GPU-0 \(X\): 20Gi resident, 0Mi swapped out, 20Gi committed of 24Gi/,
        ),
      WAIT,
    )
  })

  it('refuses a pod that is not ours, an impossible name, and a pod that does not exist', async () => {
    const plain = { metadata: { name: 'plain', namespace: 'default' }, spec: { containers: [] } }
    await world.api.create(PODS, plain)
    await expect(explained('plain')).rejects.toThrow('it does not have the label gpu-runtime=headroom')
    await expect(explained('--all')).rejects.toThrow('"--all" is not a valid pod name')
    await expect(explained('absent')).rejects.toThrow('not found')
  })

  it('shows the pod without numbers to a user who may not read nodes', async () => {
    await world.addPod('first', '20Gi')
    const out = written()
    const denied = () => Promise.reject(new KubeError(403, 'Forbidden', 'no'))
    const api: KubeApi = Object.assign(Object.create(world.api) as KubeApi, {
      get: world.api.get.bind(world.api),
      list: denied,
    })
    await explainPod(api, 'first', { namespace: 'default', output: 'table', now: NOW, out })
    expect(out.text).toContain('you do not have permission to read nodes')
    expect(out.text).toContain('The operator has not reported a reason.')
  })

  it('shows the class of a labelled PriorityClass, and the nodes of the group of the namespace', async () => {
    await world.addNode('a', 24 * GIB)
    await world.addNode('b', 24 * GIB)
    const labels = { [GROUP_LABEL]: 'team' }
    await world.api.patch(NODES, { name: 'b' }, { type: 'merge', body: { metadata: { labels } } })
    await world.api.patch(NAMESPACES, { name: 'default' }, { type: 'merge', body: { metadata: { labels } } })
    const metadata = { name: 'urgent', labels: { [CLASS_LABEL]: 'P0' } }
    await world.api.create(PRIORITY_CLASSES, { metadata, value: 1 })
    world.start()
    const inClass = (priorityClassName: string) => (pod: Pod) => ({
      ...pod,
      spec: { ...pod.spec, priorityClassName },
    })
    await world.addPod('first', '30Gi', inClass('urgent'))
    await reason('first', 'WaitingForVRAM')
    await vi.waitFor(
      async () =>
        expect(await explained('first')).toMatch(/one GPU, P0,[^]*\nnodes +b: 24Gi free [^,\n]*\n$/),
      WAIT,
    )
    await world.addPod('absent', '30Gi', inClass('deleted'))
    expect(await explained('absent')).toContain('one GPU, P2,')
  })

  it('does not guess a class or a group that the user may not read', async () => {
    const inClass = (priorityClassName: string) => (pod: Pod) => ({
      ...pod,
      spec: { ...pod.spec, priorityClassName },
    })
    await world.addPod('first', '20Gi', inClass('urgent'))
    await world.addPod('own', '20Gi', inClass('headroom-p1'))
    const api: KubeApi = Object.assign(Object.create(world.api) as KubeApi, {
      get: (...[kind, key]: Parameters<KubeApi['get']>) =>
        kind === PODS ? world.api.get(kind, key) : Promise.reject(new KubeError(403, 'Forbidden', 'no')),
    })
    const [first, own] = [written(), written()]
    const how = { namespace: 'default', output: 'table' as const, now: NOW }
    await explainPod(api, 'first', { ...how, out: first })
    expect(first.text).toContain('one GPU, the class of PriorityClass urgent, ')
    expect(first.text).toContain('you do not have permission to read nodes, GPUNodes and the namespace')
    await explainPod(api, 'own', { ...how, out: own })
    expect(own.text).toContain('one GPU, P1, ')
  })
})

describe('whatif', () => {
  it('reads PriorityClasses and namespaces too, unless the user may not', async () => {
    expect(await clusterText({ everything: (...kinds) => Promise.resolve(kinds.join()) })).toBe(
      'pods,nodes,namespaces,priorityclasses',
    )
    const denied = faultOf(new Error('x'), 'Error from server (Forbidden): namespaces is forbidden: no\n')
    const everything = vi.fn<(...kinds: readonly string[]) => Promise<string>>()
    everything.mockRejectedValueOnce(denied).mockResolvedValueOnce('some')
    expect(await clusterText({ everything })).toBe('some')
    expect(everything.mock.lastCall).toEqual(['pods', 'nodes'])
    const away = { everything: () => Promise.reject(new Error('away')) }
    await expect(clusterText(away)).rejects.toThrow('away')
  })
})

describe('nodes', () => {
  it('is a table that fits 80 columns', async () => {
    const name = 'gpu-node-12.rack-7.example.internal'
    const status = {
      ...{ gpuCount: 8, physicalMib: 1536 * GIB, effectiveMib: 2304 * GIB, committedMib: 2000 * GIB },
      ...{ swappedOutMib: 512 * GIB, overcommit: { percent: 50, source: 'ClusterGPUPolicy' } },
      conditions: [
        {
          ...{ type: 'Ready', status: 'True', reason: 'GPUsReported', message: '' },
          lastTransitionTime: '2026-11-27T10:00:00Z',
        },
        {
          ...{ type: 'AgentReady', status: 'False', reason: 'NoAgent', message: 'No agent reports.' },
          lastTransitionTime: '2026-11-27T10:00:00Z',
        },
      ],
    }
    await world.api.create(ownResource(GPU_NODE), { metadata: { name } })
    await world.api.patch(
      ownResource(GPU_NODE),
      { name },
      { type: 'merge', body: { status } },
      { subresource: 'status' },
    )
    const out = Object.assign(written(), { isTTY: true, columns: 80 })
    expect(await printNodes(world.api, 'table', out)).toBe(0)
    const lines = out.text.replaceAll(/\u001B\[\d+m/g, '').split('\n')
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
    expect(lines[1]).toMatch(/^gpu-node-12\.rack-7\.… +NoAgent +8 +1536Gi +2304Gi +2000Gi +512Gi +50 +0$/)
  })

  it('says what to do when no node is labeled for Headroom', async () => {
    await expect(printNodes(world.api, 'table')).rejects.toThrow('kubectl label node NODE')
  })
})

describe('doctor', () => {
  const containers = [{ args: ['operator', 'admission', '--runtime-class=gpu'] }]
  const deployments = ['admission', 'operator', 'scheduler'].map((name) => ({
    metadata: { namespace: 'stack', name: `headroom-${name}` },
    spec: { replicas: 2, template: { spec: { containers } } },
  }))
  const place = { service: { namespace: 'stack', name: 'headroom-admission', port: 443 } }

  /** A stack without faults. */
  async function install(): Promise<void> {
    for (const definition of customResourceDefinitions())
      await world.api.create(RESOURCE_DEFINITIONS, definition as unknown as KubeObject)
    for (const configuration of webhookConfigurations(place, 'Y2E='))
      await world.api.create(
        configuration.kind === 'MutatingWebhookConfiguration' ? MUTATING_WEBHOOKS : VALIDATING_WEBHOOKS,
        configuration as unknown as KubeObject,
      )
    for (const { metadata, spec } of deployments) {
      await world.api.create(DEPLOYMENTS, { metadata, spec })
      const body = { status: { availableReplicas: 2 } }
      await world.api.patch(DEPLOYMENTS, metadata, { type: 'merge', body }, { subresource: 'status' })
    }
    await world.api.create(LEASES, {
      metadata: { namespace: 'stack', name: 'headroom-operator' },
      spec: { holderIdentity: 'headroom-operator-1', renewTime: new Date(NOW - 1_000).toISOString() },
    })
    await world.api.create(DAEMON_SETS, {
      metadata: { namespace: 'stack', name: 'headroom-agent' },
      spec: { template: { spec: { runtimeClassName: 'nvidia' } } },
    })
    for (const name of ['nvidia', 'gpu']) await world.api.create(RUNTIME_CLASSES, { metadata: { name } })
    await world.api.create(NODES, { metadata: { name: 'a', labels: { [NODE_LABELS.enabled]: 'true' } } })
    await reportNode(['Ready', 'True', 'Pods can get its GPUs.'], ['AgentReady', 'True', ''])
  }
  async function reportNode(...conditions: readonly (readonly [string, string, string])[]): Promise<void> {
    const kind = ownResource(GPU_NODE)
    await world.api.create(kind, { metadata: { name: 'a' } }).catch(() => {})
    const status = {
      conditions: conditions.map(([type, value, message]) => ({
        ...{ type, status: value, reason: 'Test', message, lastTransitionTime: '2026-11-27T10:00:00Z' },
      })),
    }
    await world.api.patch(kind, { name: 'a' }, { type: 'merge', body: { status } }, { subresource: 'status' })
  }
  /** With admission, or what stands in its place. */
  const apiWith = (create: (object: KubeObject) => Promise<unknown>): KubeApi =>
    ({
      get: world.api.get.bind(world.api),
      list: world.api.list.bind(world.api),
      create: (_kind: unknown, object: KubeObject) => create(object),
    }) as unknown as KubeApi
  const admitting = (object: KubeObject): Promise<unknown> => {
    const admitted = admitPod(object as unknown as Pod, DEFAULT_ADMISSION)
    return admitted.ok ? Promise.resolve(admitted.pod) : Promise.reject(new Error('refused'))
  }
  async function found(create = admitting): Promise<{ readonly code: number; readonly text: string }> {
    const out = written()
    const how = { version: 'v1.36.4', namespace: 'default', output: 'table' as const, now: NOW, out }
    const code = await examine(apiWith(create), how)
    return { code, text: out.text }
  }
  const failures = (text: string) => text.split('\n').filter((line) => /^(warn|fail)/.test(line))

  it('finds nothing in a stack without faults', async () => {
    await install()
    const { code, text } = await found()
    expect(failures(text)).toEqual([])
    expect(code).toBe(0)
  })

  it('expects no scheduler and unchanged pods of a stack that observes', async () => {
    await install()
    const key = { namespace: 'stack', name: 'headroom-operator' }
    const spec = { template: { spec: { containers: [{ args: ['operator', 'run', '--observe'] }] } } }
    await world.api.patch(DEPLOYMENTS, key, { type: 'merge', body: { spec } })
    await world.api.delete(DEPLOYMENTS, { ...key, name: 'headroom-scheduler' })
    const { code, text } = await found((object) => Promise.resolve(object))
    expect([code, failures(text)]).toEqual([0, []])
    expect(text).toMatch(/ok +admission +observe mode/)
  })

  it('finds that nothing is installed', async () => {
    const { code, text } = await found((object) => Promise.resolve(object))
    expect(code).toBe(1)
    expect(text).toMatch(/fail +GPUNode +the resource gpunodes\.headroom\.dev is missing; kubectl apply/)
    expect(text).toMatch(/fail +webhook: change pods +there is no MutatingWebhookConfiguration/)
    expect(text).toMatch(/fail +admission +a test pod was not changed/)
  })

  it('finds a webhook that the API server does not reach', async () => {
    await install()
    const text = 'failed calling webhook "mutate-pods.headroom.dev": dial tcp 10.0.0.5:443: i/o timeout'
    const failed = await found(() => Promise.reject(new KubeError(500, 'InternalError', text)))
    expect(failed.code).toBe(1)
    expect(failures(failed.text)).toEqual([
      expect.stringMatching(/^fail +admission +failed calling webhook .* deployment\/headroom-admission/),
    ])
  })

  it.each([
    [
      'a resource of an older version',
      async () => {
        const [definition] = customResourceDefinitions()
        const text = JSON.stringify(definition).replace('"idleSwapOutSeconds":', '"gone":')
        await world.api.replace(RESOURCE_DEFINITIONS, JSON.parse(text) as KubeObject)
      },
      /fail +ClusterGPUPolicy +is older than this command: it lacks spec\.idleSwapOutSeconds; kubectl apply/,
    ],
    [
      'an agent that does not report',
      () =>
        reportNode(['Ready', 'True', ''], ['AgentReady', 'False', 'No agent reports: no pod is swapped.']),
      /fail +agent of a +No agent reports: no pod is swapped; check the pod/,
    ],
    [
      'a label that is ignored',
      () =>
        reportNode(
          ['Ready', 'True', ''],
          ['AgentReady', 'True', ''],
          ['InvalidOverride', 'True', 'The label has "abc".'],
        ),
      /warn +node a +The label has "abc"\.; correct the label or the policy/,
    ],
    [
      'a RuntimeClass that does not exist',
      () => world.api.delete(RUNTIME_CLASSES, { name: 'nvidia' }),
      /fail +runtime class +nvidia, used by agents, does not exist: .*agent\.runtimeClassName/,
    ],
    [
      'a component without replicas',
      () =>
        world.api.patch(
          DEPLOYMENTS,
          { namespace: 'stack', name: 'headroom-operator' },
          { type: 'merge', body: { status: { availableReplicas: 0 } } },
          { subresource: 'status' },
        ),
      /fail +operator +0 of 2 replicas are available; run kubectl describe -n stack/,
    ],
    [
      'an operator that has stopped',
      () =>
        world.api.patch(
          LEASES,
          { namespace: 'stack', name: 'headroom-operator' },
          { type: 'merge', body: { spec: { renewTime: new Date(NOW - 600_000).toISOString() } } },
        ),
      /fail +leader +headroom-operator-1 has not renewed its Lease for 10m/,
    ],
    [
      'an autoscaler',
      () =>
        world.api.create(DEPLOYMENTS, {
          metadata: { namespace: 'x', name: 'scaler', labels: { 'app.kubernetes.io/name': 'karpenter' } },
        }),
      /warn +autoscaler +scaler ignores pods with a scheduling gate/,
    ],
  ])('finds %s, and nothing else', async (_what, spoil, line) => {
    await install()
    await spoil()
    expect(failures((await found()).text)).toEqual([expect.stringMatching(line)])
  })
})

describe('release', () => {
  const owner: OwnerReference = { kind: 'ReplicaSet', name: 'train', uid: 'r', controller: true }
  const owned = (pod: Pod): Pod => ({ ...pod, metadata: { ...pod.metadata, ownerReferences: [owner] } })
  async function released(name: string, more: Partial<ReleaseHow> = {}): Promise<string> {
    const out = written()
    const how = { namespace: 'default', isUndone: false, mayReplace: false, waitMs: 500, lookEveryMs: 20 }
    expect(await releasePod(world.api, name, { ...how, out, ...more })).toBe(0)
    return out.text
  }

  it('does not delete a waiting pod without --replace', async () => {
    await world.addPod('train', '8Gi')
    await expect(released('train')).rejects.toThrow('Use --replace to delete it and recreate it')
    expect((await world.pod('train')).spec.schedulingGates).toHaveLength(1)
  })

  it('makes a waiting pod a plain pod of the same name', async () => {
    const before = await world.addPod('train', '8Gi')
    expect(await released('train', { mayReplace: true })).toContain('is now a plain pod')
    const { metadata, spec } = await world.pod('train')
    expect(metadata.uid).not.toBe(before.metadata.uid)
    expect([metadata.labels, spec.schedulingGates, spec.schedulerName]).toEqual([{}, undefined, undefined])
  })

  it('keeps the pod when a plain one would be refused, and its manifest if that fails later', async () => {
    await world.addPod('train', '8Gi')
    const create = vi.spyOn(world.api, 'create')
    create.mockRejectedValueOnce(new KubeError(403, 'Forbidden', 'exceeded quota'))
    await expect(released('train', { mayReplace: true })).rejects.toThrow('exceeded quota')
    expect((await world.pod('train')).spec.schedulingGates).toHaveLength(1)
    create.mockImplementation((_kind, object, options) =>
      options?.isDryRun === true ? Promise.resolve(object) : Promise.reject(new Error('away')),
    )
    await expect(released('train', { mayReplace: true })).rejects.toThrow(
      /was not created: away\. .*"image":"registry\.example\/train:1"/,
    )
  })

  it('replaces a pod although its condition changes meanwhile, and leaves one that was bound', async () => {
    await world.addPod('train', '8Gi')
    const key = { namespace: 'default', name: 'train' }
    const remove = world.api.delete.bind(world.api)
    const spy = vi.spyOn(world.api, 'delete')
    const changing = async (body: object, ...args: Parameters<typeof remove>): Promise<void> => {
      await world.api.patch(PODS, key, { type: 'merge', body })
      return remove(...args)
    }
    spy.mockImplementationOnce((...args) => changing({ metadata: { annotations: { a: 'b' } } }, ...args))
    expect(await released('train', { mayReplace: true })).toContain('is now a plain pod')
    await world.addPod('other', '8Gi')
    key.name = 'other'
    const bound = { metadata: { annotations: { [POD_ANNOTATIONS.gpuUuids]: 'x' } }, spec: { nodeName: 'a' } }
    spy.mockImplementationOnce((...args) => changing(bound, ...args))
    await expect(released('other', { mayReplace: true })).rejects.toThrow(
      'is no longer waiting and was not deleted',
    )
    expect((await world.pod('other')).spec.nodeName).toBe('a')
  })

  it('leaves a pod of a controller to its template, and deletes it once the stack is gone', async () => {
    await world.addPod('train', '8Gi', owned)
    const [configuration] = webhookConfigurations({ url: 'https://localhost' }, null)
    await world.api.create(MUTATING_WEBHOOKS, configuration as unknown as KubeObject)
    await expect(released('train')).rejects.toThrow('Remove the label gpu-runtime from the pod template')
    await world.api.delete(MUTATING_WEBHOOKS, { name: 'headroom-admission' })
    expect(await released('train')).toContain('ReplicaSet train replaces it with a plain pod')
    await expect(world.pod('train')).rejects.toThrow('not found')
  })

  it('says that a pod does not return, and keeps the order', async () => {
    await world.addNode('a', 24 * GIB)
    const operator = world.start()
    await world.addPod('train', '8Gi')
    await reason('train', 'Bound')
    await operator.stop()
    const { status } = await world.pod('train')
    const conditions = (status?.conditions ?? []).map((each) => ({ ...each, reason: 'SwappedOut' }))
    await world.api.patch(
      PODS,
      { namespace: 'default', name: 'train' },
      { type: 'merge', body: { status: { conditions } } },
      { subresource: 'status' },
    )
    await expect(released('train', { waitMs: 100 })).rejects.toThrow('is still swapped out')
    const keep = POD_ANNOTATIONS.keepInVram
    expect((await world.pod('train')).metadata.annotations?.[keep]).toBe('true')
    expect(await released('train', { isUndone: true })).toContain('may be swapped out again')
    expect((await world.pod('train')).metadata.annotations?.[keep]).toBeUndefined()
  })
})

describe('What kubectl prints', () => {
  const fault = (text: string) => faultOf(new Error('exit 1'), text)
  it.each([
    ['Error from server (NotFound): pods "a" not found\n', { code: 404, message: 'pods "a" not found' }],
    ['Error from server (Forbidden): pods is forbidden: no\n', { code: 403 }],
    [
      'Warning: old\nError from server (InternalError): error when creating "STDIN": Internal error: ' +
        'failed calling webhook "x": y\n',
      { code: 500, message: 'Internal error: failed calling webhook "x": y' },
    ],
    ['error: the server doesn\'t have a resource type "gpunodes"\n', { code: 404 }],
    ['The connection to the server localhost:8080 was refused\n', { exitCode: 3 }],
    ['Unable to connect to the server: context deadline exceeded\n', { exitCode: 3 }],
    ['error: error loading config file "/x": yaml: line 2: did not find expected node\n', { exitCode: 2 }],
    ['error: stat /x: no such file or directory\n', { exitCode: 2 }],
    ['error: You must be logged in to the server (Unauthorized)\n', { exitCode: 7 }],
    [
      'error: context "x" does not exist\n',
      { exitCode: 2, message: 'kubectl: error: context "x" does not exist' },
    ],
  ])('%j becomes an error with its code', (text, expected) => {
    expect(fault(text)).toMatchObject(expected)
  })

  it('A missing kubectl is named', () => {
    const error = Object.assign(new Error('spawn'), { code: 'ENOENT' })
    expect(faultOf(error, '')).toMatchObject({ message: expect.stringContaining('kubectl was not found') })
  })
})
