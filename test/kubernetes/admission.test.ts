/** Admission as the real API server calls it: what kubectl is told, and what is stored. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { AGENT_LABELS, NODE_LABELS, POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../../operator/contract/policies.ts'
import {
  type KubeApi,
  KubeError,
  type KubeObject,
  NODES,
  ownResource,
  PODS,
} from '../../operator/ports/kube-api.ts'
import { rightsOf, STACK_NAMESPACE } from '../support/kubernetes/account.ts'
import { startAdmissionOn } from '../support/kubernetes/components.ts'
import { ControlPlane, whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aClusterPolicy, aNodePolicy, aPod } from '../support/kubernetes/objects.ts'
import type { RunningCommand } from '../support/running-command.ts'

const WAIT = { timeout: 30_000, interval: 200 }

describe.skipIf(whyNoControlPlane() !== null)('With etcd, kube-apiserver and the webhooks', () => {
  let plane: ControlPlane
  let admission: RunningCommand
  let api: KubeApi

  beforeAll(async () => {
    plane = await ControlPlane.start()
    api = plane.client()
    admission = await startAdmissionOn(plane, '--overcommit', '20')
  })
  afterAll(() => plane.stop())

  let serial = 0
  const named = (pod: Pod, name = `pod-${(serial += 1)}`): Pod => ({
    ...pod,
    metadata: { ...pod.metadata, name },
  })
  async function create(pod: Pod): Promise<{ readonly pod: Pod; readonly warnings: readonly string[] }> {
    const warnings: string[] = []
    // A try before the webhooks are there leaves a pod behind.
    await api.delete(PODS, { namespace: 'default', name: pod.metadata.name! }).catch(() => {})
    const made = await api.create(PODS, pod as unknown as KubeObject, {
      onWarning: (text) => warnings.push(text),
    })
    return { pod: made as unknown as Pod, warnings }
  }
  const refusal = (pod: Pod): Promise<string> =>
    create(named(pod)).then(
      () => expect.fail('it was not refused'),
      (error: unknown) => (error instanceof KubeError ? error.message : String(error)),
    )

  it('A labelled pod is stored with gate, scheduler, quota resource and variables', async () => {
    const { pod, warnings } = await create(named(aPod()))
    expect(warnings).toEqual([])
    expect(pod.spec).toMatchObject({
      schedulerName: 'headroom-scheduler',
      schedulingGates: [{ name: 'headroom.dev/vram' }],
    })
    const [main] = pod.spec.containers
    expect(main?.resources?.limits).toEqual({ 'headroom.dev/vram-mib': '8192' })
    expect(main?.env?.map(({ name }) => name)).toEqual([
      'VENDOR_SWAP_FROM_VRAM',
      'NVIDIA_VISIBLE_DEVICES',
      'CUDA_VISIBLE_DEVICES',
    ])
  })

  it('Amounts that the API server writes in another form are accepted', async () => {
    const resources = { limits: { memory: '1500M' }, requests: { memory: '1500M' } }
    const pod = named(aPod({ [POD_ANNOTATIONS.podVram]: '8000Mi' }))
    const stored = await create({
      ...pod,
      spec: { ...pod.spec, containers: [{ name: 'main', image: 'x:1', resources }] },
    })
    expect(stored.pod.spec.containers[0]?.resources?.limits?.['headroom.dev/vram-mib']).toBe('8k')
  })

  it.each([
    [{ [POD_ANNOTATIONS.podVram]: '0' }, 'metadata.annotations[headroom.dev/pod-vram]'],
    [{ [POD_ANNOTATIONS.podVram]: undefined }, 'metadata.annotations[headroom.dev/pod-vram]: is required'],
    [{ [POD_ANNOTATIONS.swapFromVram]: 'TRUE' }, 'metadata.annotations[headroom.dev/swap-from-vram]'],
    [{ [POD_ANNOTATIONS.gpuUuids]: 'GPU-0' }, 'metadata.annotations[headroom.dev/gpu-uuids]'],
  ])(
    'A pod with the annotations %j is refused, and the message names the field',
    async (annotations, path) => {
      expect(await refusal(aPod(annotations))).toContain(path)
    },
  )

  it('A variable set by hand becomes the annotation, and kubectl shows the warning', async () => {
    const pod = named(aPod())
    const env = [{ name: 'VENDOR_SWAP_FROM_VRAM', value: '0' }]
    const text = JSON.stringify({
      ...pod,
      spec: { containers: [{ name: 'main', image: 'registry.example/x:1', env }] },
    })
    expect(await plane.kubectl(['apply', '-f', '-', '--dry-run=server', '-o', 'yaml'], text)).toContain(
      'headroom.dev/swap-from-vram: "false"',
    )
    const { warnings } = await create(JSON.parse(text) as Pod)
    expect(warnings).toEqual([expect.stringContaining('set the annotation headroom.dev/swap-from-vram')])
  })

  it('A misspelt label is warned about, and the pod is left as it is', async () => {
    const pod = named(aPod())
    const labels = { 'gpu-runtime': 'headrom' }
    const { warnings, ...made } = await create({ ...pod, metadata: { ...pod.metadata, labels } })
    expect(warnings).toEqual([expect.stringContaining('did you mean "headroom"?')])
    expect(made.pod.spec.schedulerName).toBe('default-scheduler')
    expect(made.pod.spec.schedulingGates).toBeUndefined()
  })

  it('An annotation that admission has read cannot be changed or removed', async () => {
    const { pod } = await create(named(aPod()))
    const key = { namespace: 'default', name: pod.metadata.name! }
    for (const value of ['9Gi', null]) {
      const body = { metadata: { annotations: { [POD_ANNOTATIONS.podVram]: value } } }
      await expect(api.patch(PODS, key, { type: 'merge', body })).rejects.toThrow('headroom.dev/pod-vram')
    }
    await api.patch(PODS, key, { type: 'merge', body: { metadata: { annotations: { note: 'x' } } } })
  })

  it('A pod with probes is admitted where Pod Security enforces restricted, with the helper', async () => {
    const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' }
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'strict', labels } }
    await plane.kubectl(['apply', '-f', '-'], JSON.stringify(namespace))
    const pod = named(aPod())
    const confined = {
      ...{ allowPrivilegeEscalation: false, runAsNonRoot: true, capabilities: { drop: ['ALL'] } },
      seccompProfile: { type: 'RuntimeDefault' },
    }
    const probes = {
      startupProbe: { tcpSocket: { port: 'http' } },
      livenessProbe: { httpGet: { path: '/live', port: 'http' }, failureThreshold: 1 },
      readinessProbe: { grpc: { port: 9000 } },
    }
    const main = { name: 'main', image: 'registry.example/x:1', securityContext: confined, ...probes }
    const inStrict = (container: object): KubeObject => ({
      ...{
        ...pod,
        spec: { containers: [{ ...main, ...container, ports: [{ name: 'http', containerPort: 80 }] }] },
      },
      metadata: { ...pod.metadata, namespace: 'strict' },
    })
    const warnings: string[] = []
    const onWarning = (text: string): unknown => warnings.push(text)
    await expect(api.create(PODS, inStrict({ securityContext: {} }))).rejects.toThrow('violates PodSecurity')
    const { spec } = (await api.create(PODS, inStrict({}), { onWarning })) as unknown as Pod
    expect(warnings).toEqual([])
    expect(spec.initContainers).toMatchObject([{ name: 'headroom-probe', image: 'registry.example/agent:1' }])
    const [container] = spec.containers
    expect(container?.livenessProbe).toMatchObject({
      failureThreshold: 2,
      timeoutSeconds: 2,
      periodSeconds: 10,
    })
    for (const probe of [container?.livenessProbe, container?.startupProbe, container?.readinessProbe])
      expect(probe?.exec?.command?.[0]).toBe('/headroom-probe/probe')
  })

  it('The owner cannot choose GPUs of a bound pod; the binding writes them', async () => {
    await api.create(NODES, { metadata: { name: 'gpu-1' } })
    const { pod } = await create(named(aPod()))
    const key = { namespace: 'default', name: pod.metadata.name! }
    const gate = [{ op: 'remove', path: '/spec/schedulingGates/0' }] as const
    await api.patch(PODS, key, { type: 'json', body: gate })
    const annotations = { [POD_ANNOTATIONS.gpuUuids]: 'GPU-0' }
    const binding = { metadata: { ...key, annotations }, target: { kind: 'Node', name: 'gpu-1' } }
    await api.create(PODS, binding, { subresource: 'binding' })
    expect(await api.get(PODS, key)).toMatchObject({ metadata: { annotations }, spec: { nodeName: 'gpu-1' } })
    const body = { metadata: { annotations: { [POD_ANNOTATIONS.gpuUuids]: 'GPU-1' } } }
    await expect(api.patch(PODS, key, { type: 'merge', body })).rejects.toThrow('headroom.dev/gpu-uuids')
  })

  it('A second VendorNodePolicy for a node is refused with the name of the first', async () => {
    const policy = (name: string, percent: number): string =>
      JSON.stringify({
        apiVersion: 'headroom.dev/v1alpha1',
        kind: 'VendorNodePolicy',
        ...aNodePolicy(name, percent, 'gpu-5'),
      })
    await plane.kubectl(['apply', '-f', '-'], policy('one', 0))
    await expect(plane.kubectl(['apply', '-f', '-'], policy('two', 20))).rejects.toThrow(
      /node "gpu-5" already has the VendorNodePolicy one/,
    )
    await plane.kubectl(['apply', '-f', '-'], policy('one', 30))
  })

  it('A dry run of a policy answers with a forecast, and stores nothing', async () => {
    const kind = ownResource(GPU_NODE)
    await api.create(kind, { metadata: { name: 'gpu-7' } })
    const gpu = { uuid: 'G', physicalMib: 24_576, effectiveMib: 36_864, foreignMib: 0 }
    const claim = { podUid: 'u', podNamespace: 'default', podName: 'p', gpuUuids: ['G'], vramMib: 30_720 }
    const status = {
      ...{ effectiveMib: 36_864, overcommit: { percent: 50, source: 'Helm' } },
      gpus: [{ ...gpu, committedMib: 30_720, residentMib: 30_720, swappedOutMib: 0 }],
      claims: [{ ...claim, swappable: true }],
    }
    await api.patch(kind, { name: 'gpu-7' }, { type: 'merge', body: { status } }, { subresource: 'status' })
    const warnings: string[] = []
    const onWarning = (text: string): unknown => warnings.push(text)
    const policy = { ...aClusterPolicy(0) }
    await api.create(ownResource(CLUSTER_GPU_POLICY), policy, { isDryRun: true, onWarning })
    expect(warnings).toEqual([
      'forecast: 0% on 1 node; schedulable VRAM 36 GiB now, 24 GiB then.',
      'forecast: pods there hold more than the new limit on gpu-7 (6 GiB): they stay, and no pod is added.',
      'forecast: waiting times were not simulated, because admission knows no operator.',
    ])
    expect((await api.list(ownResource(CLUSTER_GPU_POLICY))).items).toEqual([])
    warnings.length = 0
    await api.create(ownResource(CLUSTER_GPU_POLICY), policy, { onWarning })
    expect(warnings).toEqual([])
    await api.delete(ownResource(CLUSTER_GPU_POLICY), { name: 'default' })
  })

  it('The pod of an agent gets the percentage of its node, wherever it comes from', async () => {
    const label = { [NODE_LABELS.overcommitPercent]: '70' }
    await api.create(NODES, { metadata: { name: 'of-helm' } })
    await api.create(NODES, { metadata: { name: 'of-label', labels: label } })
    await api.create(NODES, { metadata: { name: 'of-policy', labels: label } })
    await api.create(ownResource(VENDOR_NODE_POLICY), { ...aNodePolicy('of-policy', 0) })
    const percentsOn = async (round: string, ...nodes: readonly string[]): Promise<unknown[]> =>
      Promise.all(nodes.map((node) => percentOfAgent(`${round}-${node}`, node)))
    const all = ['of-helm', 'of-label', 'of-policy', 'unknown'] as const
    expect(await percentsOn('first', ...all)).toEqual(['20', '70', '0', undefined])
    await api.create(ownResource(CLUSTER_GPU_POLICY), { ...aClusterPolicy(1000) })
    expect(await percentsOn('second', ...all)).toEqual(['1000', '70', '0', undefined])
    await api.delete(ownResource(CLUSTER_GPU_POLICY), { name: 'default' })
  })

  /** As the controller of DaemonSets creates it. */
  async function percentOfAgent(name: string, node: string): Promise<string | undefined> {
    const pin = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }
    const required = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [pin] } }
    const made = (await api.create(PODS, {
      metadata: { name, namespace: STACK_NAMESPACE, labels: AGENT_LABELS },
      spec: { containers: [{ name: 'agent', image: 'x:1' }], affinity: { nodeAffinity: required } },
    })) as unknown as Pod
    const [container] = made.spec.containers
    return container?.env?.find((each) => each.name === 'VENDOR_VRAM_OVERCOMMIT_PERCENT')?.value
  }

  it('A node label that is no percentage gets a warning, and other changes get none', async () => {
    await api.create(NODES, { metadata: { name: 'labelled' } })
    const warningsOf = async (labels: Readonly<Record<string, string>>): Promise<readonly string[]> => {
      const warnings: string[] = []
      const patch = { type: 'merge', body: { metadata: { labels } } } as const
      await api.patch(NODES, { name: 'labelled' }, patch, { onWarning: (text) => warnings.push(text) })
      return warnings
    }
    const percent = (value: string) => warningsOf({ [NODE_LABELS.overcommitPercent]: value })
    for (const value of ['0', '20', '1000', '20']) expect(await percent(value)).toEqual([])
    for (const value of ['1001', 'abc', '007', '1e2', ''])
      expect(await percent(value)).toEqual([expect.stringContaining('a whole number from 0 to 1000')])
    expect(await warningsOf({ other: 'x' })).toEqual([])
    // Kubernetes itself allows no label that begins with a dash.
    await expect(percent('-1')).rejects.toThrow('a valid label must be')
  })

  it('Without admission, which used all its rights, only labelled pods are refused', async () => {
    admission.process.kill('SIGTERM')
    expect(await admission.ended).toBe(0)
    expect(rightsOf(plane, 'admission')).toEqual({ forbidden: [], unused: [] })
    const pod = named(aPod())
    await create({ ...pod, metadata: { ...pod.metadata, labels: {} } })
    const { warnings } = await create({
      ...named(aPod()),
      metadata: { name: 'other', namespace: 'default', labels: { 'gpu-runtime': 'nvidia' } },
    })
    expect(warnings).toEqual([])
    expect(await refusal(aPod())).toMatch(/failed calling webhook "mutate-pods.headroom.dev"/)
  })

  it('Without webhooks the policies of the API server refuse what admission has not changed', async () => {
    const kept = (await api.list(PODS)).items.find(({ spec }) =>
      JSON.stringify(spec).includes('headroom-sch'),
    )
    await plane.kubectl(['delete', 'mutatingwebhookconfigurations,validatingwebhookconfigurations', '--all'])
    const why = (): Promise<string> => refusal(aPod())
    await vi.waitFor(async () => expect(await why()).toContain('must be admitted by Headroom'), WAIT)
    const key = { namespace: 'default', name: kept?.metadata.name ?? '' }
    const body = { metadata: { annotations: { [POD_ANNOTATIONS.podVram]: '1Gi' } } }
    await expect(api.patch(PODS, key, { type: 'merge', body })).rejects.toThrow(
      `the annotation ${POD_ANNOTATIONS.podVram} must not change`,
    )
    await api.patch(PODS, key, { type: 'merge', body: { metadata: { annotations: { other: 'x' } } } })
    // The operator of the stack may not change pods of others.
    const asOperator = ['--as', `system:serviceaccount:${STACK_NAMESPACE}:headroom-operator`]
    await create({ ...named(aPod(), 'plain'), metadata: { name: 'plain', namespace: 'default' } })
    const rights = ['create', 'clusterrolebinding', 'operator', '--clusterrole', 'cluster-admin']
    const account = ['--serviceaccount', `${STACK_NAMESPACE}:headroom-operator`]
    await plane.kubectl([...rights, ...account])
    const annotate = ['annotate', 'pod', 'plain', 'x=y']
    await expect(plane.kubectl([...annotate, ...asOperator])).rejects.toThrow('changes pods with the label')
    await plane.kubectl(['annotate', 'pod', key.name, 'x=y', ...asOperator])
  })
})
