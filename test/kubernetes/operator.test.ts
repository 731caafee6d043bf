/**
 * The whole way of a pod on a real API server with the real scheduler: admission, gate, claim, extender,
 * binding. Nodes are objects without a kubelet; a test ends pods by their status.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { AgentClient } from '../../operator/adapters/agent-client.ts'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import {
  ADMITTED_CONDITION,
  CLASS_LABEL,
  GROUP_LABEL,
  NODE_GPUS,
  POD_ANNOTATIONS,
} from '../../operator/contract/names.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../operator/contract/policies.ts'
import { type KubeApi, ownResource, PODS } from '../../operator/ports/kube-api.ts'
import { freePort } from '../support/free-port.ts'
import { rightsOf } from '../support/kubernetes/account.ts'
import { callerCertificates, startAdmissionOn, startOperatorOn } from '../support/kubernetes/components.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { addReadyNode } from '../support/kubernetes/nodes.ts'
import { aClusterPolicy, aPod } from '../support/kubernetes/objects.ts'
import { kubectlHeadroom } from '../support/kubernetes/plugin.ts'
import type { RunningCommand } from '../support/running-command.ts'

const WAIT = { timeout: 90_000, interval: 100 }

describe.skipIf(whyNoControlPlane('kube-scheduler') !== null)('With the scheduler of Kubernetes', () => {
  let plane: ControlPlane
  let operator: RunningCommand
  let api: KubeApi
  let port = 0

  beforeAll(async () => {
    plane = await ControlPlane.start()
    api = plane.client()
    await startAdmissionOn(plane)
    port = await freePort()
    operator = await startOperatorOn(plane, port)
    await plane.startScheduler(port, await callerCertificates(plane))
  })
  afterAll(() => plane.stop())

  /** @param gib of each GPU */
  async function addNode(name: string, cpus: number, ...gib: readonly number[]): Promise<void> {
    const gpus = gib.map((size, index) => ({ uuid: `${name}-GPU-${index}`, vram_mib: size * 1024 }))
    const annotations = { [NODE_GPUS]: JSON.stringify(gpus) }
    await addReadyNode(api, { name, cpus, labels: { test: name }, annotations })
  }
  /** @param pod its name, or `namespace/name` */
  const keyOf = (pod: string) => {
    const [name = '', namespace = 'default'] = pod.split('/').toReversed()
    return { namespace, name }
  }
  async function addPod(
    name: string,
    vram: string,
    node: string,
    { cpu = '100m', ...more }: { readonly cpu?: string; readonly priorityClassName?: string } = {},
  ): Promise<void> {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: vram })
    const [main] = pod.spec.containers
    const resources = { requests: { cpu } }
    const selector = node === '' ? {} : { nodeSelector: { test: node } }
    const spec = { containers: [{ ...main, resources }], ...selector, ...more }
    await api.create(PODS, { ...pod, metadata: { ...pod.metadata, ...keyOf(name) }, spec })
  }
  const podOf = async (name: string) => (await api.get(PODS, keyOf(name))) as unknown as Pod
  const bound = (name: string): Promise<Pod> =>
    vi.waitFor(async () => {
      const pod = await podOf(name)
      if (pod.spec.nodeName === undefined)
        throw new Error(`${name}: ${JSON.stringify(pod.status)} ${operator.output()} ${plane.output}`)
      return pod
    }, WAIT)
  const waiting = (name: string): Promise<string> =>
    vi.waitFor(async () => {
      const { status } = await podOf(name)
      const found = status?.conditions?.find(({ type }) => type === ADMITTED_CONDITION)
      if (found?.reason !== 'WaitingForVRAM') throw new Error(`${name}: ${JSON.stringify(status)}`)
      return found.message ?? ''
    }, WAIT)
  const finish = (name: string) =>
    api.patch(
      PODS,
      keyOf(name),
      { type: 'merge', body: { status: { phase: 'Succeeded' } } },
      { subresource: 'status' },
    )
  const statusOf = async (name: string) =>
    (await api.get(ownResource(GPU_NODE), { name }))['status'] as GPUNodeStatus

  /** An agent with the certificate of all agents, and this token. */
  async function reportWith(token: string): Promise<void> {
    const {
      'ca.crt': ca,
      'tls.crt': cert,
      'tls.key': key,
    } = await callerCertificates(plane, 'headroom-agent')
    for (const [name, base64 = ''] of Object.entries({ 'ca.crt': ca, 'tls.crt': cert, 'tls.key': key }))
      writeFileSync(join(plane.folder, name), Buffer.from(base64, 'base64'))
    const tokenFile = join(plane.folder, 'token')
    writeFileSync(tokenFile, token.replace(' ', '-'))
    const [, agents] = await operator.says(/for agents on 127\.0\.0\.1:(\d+)/)
    const client = new AgentClient({
      ...{ host: 'localhost', port: Number(agents), certificates: plane.folder, tokenFile },
    })
    await client.report({ node: 'one', host_swap_mib: 0, wait_ms: 0, pods: [] }).finally(() => client.close())
  }

  it('Pods get GPUs by the binding, and the next one waits with its reason until one ends', async () => {
    await addNode('one', 8, 24)
    await addPod('first', '10Gi', 'one')
    await addPod('second', '10Gi', 'one')
    const [first, second] = [await bound('first'), await bound('second')]
    for (const { metadata, spec } of [first, second]) {
      expect(metadata.annotations?.[POD_ANNOTATIONS.gpuUuids]).toBe('one-GPU-0')
      expect(spec.schedulingGates).toBeUndefined()
    }
    await addPod('third', '10Gi', 'one')
    expect(await waiting('third')).toMatch(/10 GiB|10,240 MiB/)
    expect(await plane.kubectl(['get', 'pod', 'third'])).toContain('SchedulingGated')
    await vi.waitFor(async () => {
      const described = await plane.kubectl(['describe', 'pod', 'third'])
      expect(described).toMatch(/WaitingForVRAM .* headroom\.dev\/operator/)
    }, WAIT)
    const why = await kubectlHeadroom(plane, 'explain', 'third')
    expect(why.stderr).toBe('')
    expect(why.stdout).toMatch(/state +waits for VRAM[^]*why +Waiting for[^]*nodes +one: 4Gi free/)
    await finish('first')
    await bound('third')
    await vi.waitFor(async () => {
      const names = (await statusOf('one')).claims?.map(({ podName }) => podName)
      expect(names).toHaveLength(2)
      expect(names).toEqual(expect.arrayContaining(['second', 'third']))
    }, WAIT)
    expect(await plane.kubectl(['get', 'gn', 'one'])).toMatch(/24576 +24576/)
  })

  it('A node without enough CPU gives way to one that has it', async () => {
    // The smallest GPU that fits is on the node without CPU.
    await addNode('weak', 1, 16)
    await addNode('strong', 8, 24)
    await addPod('cpu', '8Gi', '', { cpu: '4' })
    expect((await bound('cpu')).spec.nodeName).toBe('strong')
  })

  it('An operator that is killed returns and gives nothing twice', async () => {
    await addNode('two', 8, 24)
    await addPod('kept', '20Gi', 'two')
    await bound('kept')
    operator.process.kill('SIGKILL')
    await operator.ended
    await addPod('later', '20Gi', 'two')
    await addPod('small', '1Gi', 'two')
    operator = await startOperatorOn(plane, port)
    await bound('small')
    await waiting('later')
    await finish('kept')
    await bound('later')
  })

  it('A policy applies at once, and its status says to how many nodes', async () => {
    await plane.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        apiVersion: 'headroom.dev/v1alpha1',
        kind: 'ClusterGPUPolicy',
        ...aClusterPolicy(50),
      }),
    )
    await vi.waitFor(async () => {
      expect((await statusOf('one')).overcommit).toEqual({ percent: 50, source: 'ClusterGPUPolicy' })
      expect(await plane.kubectl(['get', 'cgp'])).toMatch(/default +50 .* 4 +True/)
    }, WAIT)
  })

  it('The plugin of kubectl lists nodes, finds what is missing, and releases pods', async () => {
    const nodes = await kubectlHeadroom(plane, 'nodes')
    expect(nodes.stdout).toMatch(/^NODE +STATE[^]*\none +NoAgent +1 +24Gi +36Gi/)
    const json = await kubectlHeadroom(plane, 'nodes', '-o', 'json')
    expect(JSON.parse(json.stdout)).toHaveLength(4)
    const doctor = await kubectlHeadroom(plane, 'doctor')
    expect([doctor.code, doctor.stderr]).toEqual([1, ''])
    expect(doctor.stdout).toMatch(/ok +kubernetes +v1\.36/)
    expect(doctor.stdout).toMatch(/ok +GPUNode +has every field/)
    expect(doctor.stdout).toMatch(/ok +admission +the webhook set the gate/)
    expect(doctor.stdout).toMatch(/fail +agent of one +No agent reports/)
    expect(doctor.stdout).toMatch(/fail +scheduler +there is no Deployment headroom-scheduler/)
    await addPod('stuck', '24Gi', 'one')
    const refused = await kubectlHeadroom(plane, 'release', 'stuck')
    expect([refused.code, refused.stderr]).toEqual([5, expect.stringContaining('Use --replace')])
    const replaced = await kubectlHeadroom(plane, 'release', 'stuck', '--replace')
    expect([replaced.code, replaced.stderr]).toEqual([0, ''])
    const { metadata, spec } = await podOf('stuck')
    expect([metadata.labels, spec.schedulerName, spec.schedulingGates]).toEqual([
      ...[undefined, 'default-scheduler', undefined],
    ])
    const absent = await kubectlHeadroom(plane, 'explain', 'absent', '-n', 'default')
    expect([absent.code, absent.stderr]).toEqual([4, 'headroom: pods "absent" not found\n'])
    const elsewhere = await kubectlHeadroom(plane, 'nodes', '--context', 'none')
    expect([elsewhere.code, elsewhere.stderr]).toEqual([2, expect.stringContaining(': none')])
  })

  it('Labels of a PriorityClass and a namespace give their pods a class and a group', async () => {
    await addNode('team', 8, 24)
    await plane.kubectl(['create', 'namespace', 'ml'])
    await plane.kubectl(['create', 'priorityclass', 'urgent', '--value=1000'])
    const label = (kind: string, name: string, text: string) =>
      plane.kubectl(['label', kind, name, text, '--overwrite'])
    await label('node', 'team', `${GROUP_LABEL}=team`)
    await label('namespace', 'ml', `${GROUP_LABEL}=team`)
    await label('priorityclass', 'urgent', `${CLASS_LABEL}=P0`)
    await addPod('ml/first', '20Gi', '')
    expect((await bound('ml/first')).spec.nodeName).toBe('team')
    await addPod('ml/plain', '20Gi', '')
    await waiting('ml/plain')
    await addPod('ml/later', '20Gi', '', { priorityClassName: 'urgent' })
    await waiting('ml/later')
    const why = await kubectlHeadroom(plane, 'explain', 'later', '-n', 'ml')
    expect(why.stdout).toMatch(/requests +20Gi on one GPU, P0,[^]*nodes +team: /)
    await finish('ml/first')
    expect((await bound('ml/later')).spec.nodeName).toBe('team')
    expect((await podOf('ml/plain')).spec.nodeName).toBeUndefined()
    const scope = { scopeName: 'PriorityClass', operator: 'In', values: ['urgent'] }
    const hard = { pods: '1' }
    const quota = {
      ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'urgent', namespace: 'ml' } },
      ...{ spec: { hard, scopeSelector: { matchExpressions: [scope] } } },
    }
    await plane.kubectl(['create', '-f', '-'], JSON.stringify(quota))
    // As the controller of quotas writes it.
    const status = JSON.stringify({ status: { hard, used: { pods: '1' } } })
    await plane.kubectl([
      ...['patch', 'resourcequota', 'urgent', '-n', 'ml', '--subresource=status', '--type=merge'],
      ...['-p', status],
    ])
    await addPod('ml/other', '20Gi', '')
    // The API server may not have read the quota yet, and then creates the pod.
    let tries = 0
    await vi.waitFor(() => {
      const more = addPod(`ml/more-${(tries += 1)}`, '20Gi', '', { priorityClassName: 'urgent' })
      return expect(more).rejects.toThrow('exceeded quota: urgent')
    }, WAIT)
    await label('priorityclass', 'urgent', `${CLASS_LABEL}=high`)
    await vi.waitFor(async () => {
      const described = await plane.kubectl(['describe', 'priorityclass', 'urgent'])
      expect(described).toMatch(/InvalidClass .*must be P0, P1, P2, P3 or P4, not "high"/)
    }, WAIT)
  })

  it('The operator used every right of its roles, and was refused nothing', async () => {
    const bodies = { spec: { nodeName: 'one', vramOvercommitPercent: 20 } }
    await plane.kubectl(
      ['apply', '-f', '-'],
      JSON.stringify({
        ...{ apiVersion: 'headroom.dev/v1alpha1', kind: 'VendorNodePolicy', metadata: { name: 'one' } },
        ...bodies,
      }),
    )
    await vi.waitFor(async () => expect(await plane.kubectl(['get', 'vnp'])).toContain('True'), WAIT)
    await expect(reportWith('no token')).rejects.toThrow('the token is not that of an agent')
    operator.process.kill('SIGTERM')
    expect(await operator.ended).toBe(0)
    expect(rightsOf(plane, 'operator')).toEqual({ forbidden: [], unused: [] })
  })
})
