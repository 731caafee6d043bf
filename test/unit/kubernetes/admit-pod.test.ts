import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AdmissionOptions, DEFAULT_ADMISSION } from '../../../operator/admission/admission-options.ts'
import { admitPod } from '../../../operator/admission/admit-pod.ts'
import { mutatePod, requestOf, validatePod, validatePolicy } from '../../../operator/admission/review.ts'
import type { Container, Pod, Probe } from '../../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { jsonPatched } from '../../../operator/memory-api/patches.ts'
import { aNodePolicy, aPod } from '../../support/kubernetes/objects.ts'

const REWRITE: AdmissionOptions = {
  ...DEFAULT_ADMISSION,
  helperImage: 'registry.example/p:1',
}
const LIVENESS: Probe = { httpGet: { path: '/live', port: 'web' }, timeoutSeconds: 3 }

function withContainers(pod: Pod, ...containers: readonly Partial<Container>[]): Pod {
  const all = containers.map((each, i) => ({ name: `c${i}`, image: 'registry.example/x:1', ...each }))
  return { ...pod, spec: { ...pod.spec, containers: all } }
}

function admitted(pod: Pod, options = DEFAULT_ADMISSION) {
  const decided = admitPod(pod, options)
  if (!decided.ok) expect.fail(JSON.stringify(decided.faults))
  return decided
}

function refusedPaths(pod: Pod, options = DEFAULT_ADMISSION): readonly string[] {
  const decided = admitPod(pod, options)
  return decided.ok ? [] : decided.faults.map(({ path }) => path)
}

const variable = (container: Container | undefined, name: string) =>
  container?.env?.find((each) => each.name === name)

it('A pod without the label, or with another value, is left as it is', () => {
  for (const labels of [{}, { 'gpu-runtime': 'nvidia' }]) {
    const pod = { ...aPod(), metadata: { ...aPod().metadata, labels } }
    expect(admitted(pod)).toEqual({ ok: true, pod, warnings: [] })
  }
})

it('A pod gets gate, scheduler, toleration, the resource of quotas and the variables of its GPUs', () => {
  const { pod, warnings } = admitted(aPod({ [POD_ANNOTATIONS.gpuCount]: '2' }))
  expect(warnings).toEqual([])
  expect(pod.spec).toMatchObject({
    schedulerName: 'headroom-scheduler',
    schedulingGates: [{ name: 'headroom.dev/vram' }],
    tolerations: [{ key: 'headroom.dev/gpu', operator: 'Exists', effect: 'NoSchedule' }],
  })
  const [main] = pod.spec.containers
  expect(main?.resources?.requests).toEqual({ 'headroom.dev/vram-mib': '16384' })
  expect(main?.resources?.limits).toEqual({ 'headroom.dev/vram-mib': '16384' })
  const fieldRef = { fieldPath: "metadata.annotations['headroom.dev/gpu-uuids']" }
  for (const name of ['NVIDIA_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES'])
    expect(variable(main, name)?.valueFrom).toEqual({ fieldRef })
})

describe('Admission injects VENDOR_SWAP_FROM_VRAM, and the annotation is preferred', () => {
  it.each([
    ['true', '1'],
    ['false', '0'],
    [undefined, '1'],
  ])('The annotation %s gives %s in every container, init containers too', (annotation, value) => {
    const plain = withContainers(aPod({ [POD_ANNOTATIONS.swapFromVram]: annotation }), {}, {})
    const { pod } = admitted({ ...plain, spec: { ...plain.spec, initContainers: [{ name: 'init' }] } })
    for (const container of [...pod.spec.containers, ...pod.spec.initContainers!])
      expect(variable(container, 'VENDOR_SWAP_FROM_VRAM')).toEqual({ name: 'VENDOR_SWAP_FROM_VRAM', value })
    expect(pod.metadata.annotations?.[POD_ANNOTATIONS.swapFromVram]).toBe(annotation ?? 'true')
  })

  it('Both set and contrary: the annotation applies, with a warning', () => {
    const env = [{ name: 'VENDOR_SWAP_FROM_VRAM', value: '1' }]
    const { pod, warnings } = admitted(
      withContainers(aPod({ [POD_ANNOTATIONS.swapFromVram]: 'false' }), { env }),
    )
    expect(variable(pod.spec.containers[0], 'VENDOR_SWAP_FROM_VRAM')?.value).toBe('0')
    expect(warnings).toEqual([expect.stringMatching(/^spec.containers\[0\].env: .*annotation .* applies/)])
  })

  it.each(['VENDOR_SWAP_FROM_VRAM', 'HEADROOM_SWAP_FROM_VRAM'])(
    '%s without an annotation becomes the annotation, with a warning',
    (name) => {
      const { pod, warnings } = admitted(withContainers(aPod(), { env: [{ name, value: '0' }] }))
      expect(pod.metadata.annotations?.[POD_ANNOTATIONS.swapFromVram]).toBe('false')
      expect(variable(pod.spec.containers[0], 'VENDOR_SWAP_FROM_VRAM')?.value).toBe('0')
      expect(warnings).toHaveLength(1)
    },
  )

  it('Variables that differ between containers, or mean nothing, are refused with the path', () => {
    const env = (value: string) => ({ env: [{ name: 'VENDOR_SWAP_FROM_VRAM', value }] })
    expect(refusedPaths(withContainers(aPod(), env('1'), env('0')))).toEqual(['spec.containers[1].env'])
    expect(refusedPaths(withContainers(aPod(), {}, env('no')))).toEqual([
      'spec.containers[1].env[VENDOR_SWAP_FROM_VRAM]',
    ])
  })

  it('It is injected again after another webhook has added a container', () => {
    const { pod } = admitted(aPod())
    const added = { ...pod, spec: { ...pod.spec, containers: [...pod.spec.containers, { name: 'late' }] } }
    const again = admitted(added)
    expect(variable(again.pod.spec.containers[1], 'VENDOR_SWAP_FROM_VRAM')?.value).toBe('1')
  })
})

it('A variable that is set twice cannot show a container other GPUs than its own', () => {
  const twice = ['void', 'all'].map((value) => ({ name: 'NVIDIA_VISIBLE_DEVICES', value }))
  const { pod } = admitted(withContainers(aPod(), { env: [...twice, { name: 'OTHER', value: '1' }] }))
  const { env = [] } = pod.spec.containers[0]!
  expect(env.filter(({ name }) => name === 'NVIDIA_VISIBLE_DEVICES')).toMatchObject([{ valueFrom: {} }])
  expect(env.map(({ name }) => name)).toContain('OTHER')
  expect(admitted(pod).pod).toEqual(pod)
})

it('At most 64 containers get the GPUs: a pod with more names them, or is refused', () => {
  const containers = Array.from({ length: 64 }, (_, place) => ({ name: `c${place}` }))
  const pod = { ...aPod(), spec: { containers } }
  admitted(pod)
  const initContainers = [{ name: 'setup' }, { name: 'proxy', restartPolicy: 'Always' }]
  const large = { ...pod, spec: { containers, initContainers } }
  expect(admitPod(large, DEFAULT_ADMISSION)).toMatchObject({
    faults: [{ message: expect.stringContaining('not 65') as string }],
  })
  const annotations = { ...large.metadata.annotations, [POD_ANNOTATIONS.containers]: 'c0,c1' }
  admitted({ ...large, metadata: { ...large.metadata, annotations } })
})

it('Containers that the annotation does not name get no GPU', () => {
  const { pod } = admitted(withContainers(aPod({ [POD_ANNOTATIONS.containers]: 'c1' }), {}, {}))
  const [first, second] = pod.spec.containers
  expect(variable(first, 'NVIDIA_VISIBLE_DEVICES')).toEqual({ name: 'NVIDIA_VISIBLE_DEVICES', value: 'void' })
  expect(first?.resources).toBeUndefined()
  expect(variable(second, 'NVIDIA_VISIBLE_DEVICES')?.valueFrom).toBeDefined()
  expect(second?.resources?.limits).toEqual({ 'headroom.dev/vram-mib': '8192' })
})

describe('What a pod may not say', () => {
  it('The node, the GPUs and bad annotations are refused with their paths', () => {
    const pod = aPod()
    expect(refusedPaths({ ...pod, spec: { ...pod.spec, nodeName: 'gpu-1' } })).toEqual(['spec.nodeName'])
    expect(refusedPaths(aPod({ [POD_ANNOTATIONS.gpuUuids]: 'GPU-0' }))).toEqual([
      'metadata.annotations[headroom.dev/gpu-uuids]',
    ])
    expect(refusedPaths(aPod({ [POD_ANNOTATIONS.podVram]: '0' }))).toHaveLength(1)
  })

  it('A mirror pod of the kubelet is left as it is', () => {
    const pod = aPod({ 'kubernetes.io/config.mirror': 'x' })
    const mirror = { ...pod, spec: { ...pod.spec, nodeName: 'gpu-1' } }
    expect(admitted(mirror).pod).toBe(mirror)
  })

  it('Another scheduler is replaced, and a number without a unit is questioned: both with a warning', () => {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: '8' })
    const { warnings } = admitted({ ...pod, spec: { ...pod.spec, schedulerName: 'volcano' } })
    expect(warnings).toEqual([
      'spec.schedulerName volcano is replaced by headroom-scheduler',
      'metadata.annotations[headroom.dev/pod-vram]: 8 are bytes; did you mean 8Gi?',
    ])
  })
})

it('A pod that only requests are to wake, and that none can, is admitted with a warning', () => {
  const warnings = (annotation: string | undefined, main: Partial<Container>, options = REWRITE) =>
    admitted(withContainers(aPod({ [POD_ANNOTATIONS.wakeOnRequest]: annotation }), main), options).warnings
  const expected = [
    expect.stringMatching(/^metadata.annotations\[headroom.dev\/wake-on-request\]: no request/),
  ]
  const port = { name: 'web', containerPort: 8000 }
  expect(warnings('true', {})).toEqual(expected)
  expect(warnings('true', { ports: [{ ...port, name: 'metrics' }] })).toEqual(expected)
  expect(warnings('true', { ports: [port] })).toEqual([])
  // The kubelet opens the port of a probe that is not rewritten.
  const probed = { ports: [port], readinessProbe: { httpGet: { port: 'web' } } }
  expect(warnings('true', probed)).toEqual([])
  expect(warnings('true', probed, DEFAULT_ADMISSION)).toEqual(expected)
  for (const annotation of ['false', undefined]) expect(warnings(annotation, {})).toEqual([])
})

describe('Memory of swappable pods', () => {
  const memory = (pod: Pod, i = 0) => {
    const { requests, limits } = pod.spec.containers[i]?.resources ?? {}
    return [requests?.['memory'], limits?.['memory']]
  }
  const guaranteed = { resources: { requests: { memory: '2Gi' }, limits: { memory: '2Gi' } } }

  it('Request and limit grow by the VRAM on all GPUs, once', () => {
    const { pod } = admitted(withContainers(aPod({ [POD_ANNOTATIONS.gpuCount]: '2' }), guaranteed))
    expect(memory(pod)).toEqual(['18432Mi', '18432Mi'])
    expect(memory(admitted(pod).pod)).toEqual(['18432Mi', '18432Mi'])
  })

  it('A request without a limit grows, and a container without either is left as it is', () => {
    const only = { resources: { requests: { memory: '1500M' } } }
    const { pod } = admitted(withContainers(aPod(), only, {}))
    expect(memory(pod)).toEqual([String(1_500_000_000 + 8192 * 1024 * 1024), undefined])
    expect(memory(pod, 1)).toEqual([undefined, undefined])
  })

  it('Resources of the whole pod grow as well', () => {
    const pod = aPod()
    const resources = { limits: { memory: '4Gi' } }
    expect(admitted({ ...pod, spec: { ...pod.spec, resources } }).pod.spec.resources).toEqual({
      limits: { memory: '12288Mi' },
    })
  })

  it('A noswap pod keeps its memory', () => {
    const { pod } = admitted(withContainers(aPod({ [POD_ANNOTATIONS.swapFromVram]: 'false' }), guaranteed))
    expect(memory(pod)).toEqual(['2Gi', '2Gi'])
  })

  it('With `require` a limit that is too small is refused with its path', () => {
    const options: AdmissionOptions = { ...DEFAULT_ADMISSION, swapMemory: 'require' }
    expect(refusedPaths(withContainers(aPod(), guaranteed), options)).toEqual([
      'spec.containers[0].resources.limits.memory',
    ])
    const enough = { resources: { limits: { memory: '8Gi' } } }
    expect(memory(admitted(withContainers(aPod(), enough), options).pod)).toEqual([undefined, '8Gi'])
  })
})

describe('Probes of swappable pods', () => {
  const ports = [{ name: 'web', containerPort: 8080 }]
  const HELPER = '/headroom-probe/probe'
  const rewritten = (probe: Probe, more: Partial<Container> = {}) =>
    admitted(withContainers(aPod(), { ports, livenessProbe: probe, ...more }), REWRITE).pod

  it('Without the helper a liveness or startup probe makes the pod noswap, with a warning', () => {
    const { pod, warnings } = admitted(withContainers(aPod(), { ports, livenessProbe: LIVENESS }))
    expect(warnings).toEqual(['the pod is not swapped out: container c0 has a livenessProbe'])
    expect(variable(pod.spec.containers[0], 'VENDOR_SWAP_FROM_VRAM')?.value).toBe('0')
    expect(pod.metadata.annotations?.[POD_ANNOTATIONS.notSwappable]).toBe('container c0 has a livenessProbe')
    expect(pod.spec.containers[0]?.livenessProbe).toEqual(LIVENESS)
    const ready = admitted(withContainers(aPod(), { ports, readinessProbe: LIVENESS }))
    expect(ready.warnings).toEqual([])
  })

  it.each<[string, Probe, readonly string[]]>([
    ['HTTP', { httpGet: { port: 'web' } }, ['http', '--scheme', 'http', '--port', '8080', '--', '/']],
    [
      'HTTPS with a path and headers',
      {
        httpGet: {
          ...{ port: 81, path: '/a?b=$(C)', scheme: 'HTTPS' },
          httpHeaders: [{ name: 'Host', value: 'a: $b' }],
        },
      },
      // The kubelet makes one dollar sign of two, in commands only.
      ['http', '--scheme', 'https', '--port', '81', '--header', 'Host: a: $$b', '--', '/a?b=$$(C)'],
    ],
    ['TCP', { tcpSocket: { port: 9 } }, ['tcp', '--port', '9']],
    ['gRPC', { grpc: { port: 7, service: 's' } }, ['grpc', '--port', '7', '--', 's']],
    ['gRPC without a service', { grpc: { port: 7, service: null } }, ['grpc', '--port', '7', '--', '']],
    ['exec', { exec: { command: ['cat', '$(F)'] } }, ['exec', '--', 'cat', '$(F)']],
  ])('A probe by %s becomes one of the helper', (_kind, livenessProbe, [kind, ...args]) => {
    const { spec } = rewritten({ ...livenessProbe, periodSeconds: 3 } as Probe)
    expect(spec.containers[0]?.livenessProbe).toEqual({
      ...{ periodSeconds: 3, timeoutSeconds: 2 },
      exec: { command: [HELPER, kind, '--timeout', '1', ...args] },
    })
  })

  it('The check keeps its timeout, and one failure alone restarts no container', () => {
    const { livenessProbe } = rewritten({ ...LIVENESS, failureThreshold: 1 }).spec.containers[0]!
    expect(livenessProbe).toMatchObject({ timeoutSeconds: 4, failureThreshold: 2 })
    expect(livenessProbe?.exec?.command?.slice(0, 4)).toEqual([HELPER, 'http', '--timeout', '3'])
    const patient = rewritten({ ...LIVENESS, failureThreshold: 5 }).spec.containers[0]?.livenessProbe
    expect(patient?.failureThreshold).toBe(5)
  })

  it('The pod gets the helper first, its folder and its address, and keeps what it has', () => {
    const plain = withContainers(aPod(), { ports, livenessProbe: LIVENESS }, {})
    const initContainers = [{ name: 'init' }]
    const volumes = [{ name: 'data', emptyDir: {} }]
    const { pod } = admitted({ ...plain, spec: { ...plain.spec, initContainers, volumes } }, REWRITE)
    expect(pod.spec.initContainers?.map(({ name }) => name)).toEqual(['headroom-probe', 'init'])
    expect(pod.spec.volumes).toEqual([
      ...volumes,
      { name: 'headroom-probe', emptyDir: { sizeLimit: '32Mi' } },
    ])
    const [first, second] = pod.spec.containers
    expect(first?.volumeMounts).toEqual([{ name: 'headroom-probe', mountPath: '/headroom-probe' }])
    const fieldRef = { fieldPath: 'status.podIP' }
    expect(variable(first, 'HEADROOM_POD_IP')?.valueFrom).toEqual({ fieldRef })
    expect(second?.volumeMounts).toBeUndefined()
  })

  it('The helper is allowed in a restricted namespace, gets no GPU and keeps the QoS class', () => {
    const helper = rewritten(LIVENESS).spec.initContainers?.[0]
    expect(helper).toMatchObject({
      image: 'registry.example/p:1',
      command: ['/headroom-probe-helper', 'install', HELPER],
      securityContext: {
        ...{ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] }, runAsNonRoot: true },
        seccompProfile: { type: 'RuntimeDefault' },
      },
    })
    expect(helper?.resources?.requests).toEqual(helper?.resources?.limits)
    expect(Object.keys(helper?.resources?.limits ?? {})).toEqual(['cpu', 'memory'])
    expect(variable(helper, 'NVIDIA_VISIBLE_DEVICES')?.value).toBe('void')
  })

  it('A readiness probe repeats its last result, each container its own', () => {
    const ready = { readinessProbe: LIVENESS, ports }
    const { pod } = admitted(withContainers(aPod(), ready, ready), REWRITE)
    const files = pod.spec.containers.map(({ readinessProbe }) => readinessProbe?.exec?.command?.slice(4, 6))
    expect(files).toEqual([
      ['--ready', '/headroom-probe/ready-c0'],
      ['--ready', '/headroom-probe/ready-c1'],
    ])
  })

  it('A sidecar is stopped with the pod, unless the annotation names the containers', () => {
    const sidecar = { name: 'side', restartPolicy: 'Always', startupProbe: { tcpSocket: { port: 1 } } }
    const withSidecar = (containers?: string): Pod => {
      const pod = withContainers(aPod({ [POD_ANNOTATIONS.containers]: containers }), {})
      return { ...pod, spec: { ...pod.spec, initContainers: [sidecar] } }
    }
    expect(admitted(withSidecar()).warnings).toEqual([
      'the pod is not swapped out: container side has a startupProbe',
    ])
    expect(admitted(withSidecar(), REWRITE).pod.spec.initContainers?.[1]?.startupProbe?.exec).toBeDefined()
    expect(admitted(withSidecar('c0')).warnings).toEqual([])
    expect(admitted(withSidecar('c0'), REWRITE).pod.spec.initContainers).toMatchObject([sidecar])
  })

  it('A container that another webhook adds is rewritten too, and the helper stays first', () => {
    const { spec, ...pod } = rewritten(LIVENESS)
    const late = { name: 'late', ports, livenessProbe: LIVENESS }
    const [helper] = spec.initContainers!
    const added = { containers: [...spec.containers, late], initContainers: [{ name: 'init' }, helper!] }
    const again = admitted({ ...pod, spec: { ...spec, ...added } }, REWRITE).pod.spec
    expect(again.containers.map(({ livenessProbe }) => livenessProbe?.timeoutSeconds)).toEqual([4, 4])
    expect(again.containers[1]?.volumeMounts).toHaveLength(1)
    expect(again.initContainers?.map(({ name }) => name)).toEqual(['headroom-probe', 'init'])
  })

  it.each<[string, Probe]>([
    ['its own host', { httpGet: { port: 80, host: '10.0.0.1' } }],
    ['its own host', { tcpSocket: { port: 80, host: '10.0.0.1' } }],
    ['the unknown port', { tcpSocket: { port: 'absent' } }],
    ['no command', { exec: {} }],
    ['unknown kind', {}],
  ])('A probe with %s makes the pod noswap, with a warning', (why, startupProbe) => {
    const { warnings, pod } = admitted(withContainers(aPod(), { ports, startupProbe }), REWRITE)
    expect(warnings).toEqual([expect.stringMatching(`startupProbe of container c0 .*${why}`)])
    expect(pod.spec.containers[0]?.startupProbe).toEqual(startupProbe)
  })

  it.each([
    { initContainers: [{ name: 'headroom-probe', command: ['sh'] }] },
    { volumes: [{ name: 'headroom-probe', configMap: { name: 'x' } }] },
  ])('A pod that has the name of the helper is noswap: %j', (own) => {
    const pod = withContainers(aPod(), { ports, livenessProbe: LIVENESS })
    const { warnings } = admitted({ ...pod, spec: { ...pod.spec, ...own } }, REWRITE)
    expect(warnings).toEqual([expect.stringMatching('the name headroom-probe is taken')])
  })
})

const review = (operation: string, object: unknown, more: object = {}) =>
  requestOf({
    apiVersion: 'admission.k8s.io/v1',
    request: { uid: 'u', operation, kind: { kind: 'Pod' }, object, ...more },
  })!

/** As the API server stores it: names in order, quantities in their shortest form. */
function asStored(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asStored)
  if (typeof value === 'string') return /^[1-9]\d*000$/.test(value) ? `${value.slice(0, -3)}k` : value
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, field]) => [name, asStored(field)]))
}

const anyProbe = fc.constantFrom<Probe | undefined>(
  ...[undefined, LIVENESS, { exec: { command: ['true'] }, failureThreshold: 1 }],
  ...[{ httpGet: { port: 80, path: '/$' } }, { tcpSocket: { port: 1, host: 'x' } }],
)
const anyContainer = fc.record({
  env: fc.subarray([
    { name: 'A', value: 'b' },
    { name: 'NVIDIA_VISIBLE_DEVICES', value: 'all' },
  ]),
  resources: fc.constantFrom({}, { limits: { memory: '1Gi' } }, { requests: { memory: '500M', cpu: '1' } }),
  livenessProbe: anyProbe,
  readinessProbe: anyProbe,
})

it('For any pod the patch leads to a pod that admission accepts unchanged', () => {
  fc.assert(
    fc.property(
      fc.array(anyContainer, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('8Gi', '8000Mi', '1.5Gi', '1'),
      fc.constantFrom(undefined, 'true', 'false'),
      fc.constantFrom(DEFAULT_ADMISSION, REWRITE, { ...REWRITE, runtimeClassName: 'nvidia' }),
      (containers, vram, swap, options) => {
        const annotations = { [POD_ANNOTATIONS.podVram]: vram, [POD_ANNOTATIONS.swapFromVram]: swap }
        const parts = JSON.parse(JSON.stringify(containers)) as Partial<Container>[]
        const pod = withContainers(aPod(annotations), ...parts)
        const { response } = mutatePod(review('CREATE', pod), options)
        const patch = JSON.parse(Buffer.from(response.patch ?? '', 'base64').toString())
        const stored = asStored(jsonPatched(pod, patch))
        expect(mutatePod(review('CREATE', stored), options).response.patch).toBeUndefined()
        expect(validatePod(review('CREATE', stored), options).response).toMatchObject({ allowed: true })
      },
    ),
  )
})

describe('Reviews', () => {
  it('A refusal has the code 422 and names every field', () => {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: 'x', [POD_ANNOTATIONS.swapFromVram]: 'no' })
    const { response } = mutatePod(review('CREATE', pod), DEFAULT_ADMISSION)
    expect(response).toMatchObject({ uid: 'u', allowed: false, status: { code: 422, reason: 'Invalid' } })
    expect(response.status?.message).toMatch(/pod-vram\]: .*; metadata.annotations\[.*swap-from-vram\]: /)
  })

  it('A pod that another webhook has taken the gate from is refused', () => {
    const { pod } = admitted(aPod())
    const { schedulingGates: _gates, ...spec } = pod.spec
    const { response } = validatePod(review('CREATE', { ...pod, spec }), DEFAULT_ADMISSION)
    expect(response.status?.message).toMatch(/^spec.schedulingGates: /)
  })

  it('An update may not change what admission has read; one of another pod may', () => {
    const before = admitted(aPod()).pod
    const { annotations } = before.metadata
    const after = {
      ...before,
      metadata: { ...before.metadata, annotations: { ...annotations, [POD_ANNOTATIONS.podVram]: '1Gi' } },
    }
    const update = review('UPDATE', after, { oldObject: before })
    expect(validatePod(update, DEFAULT_ADMISSION).response).toMatchObject({ allowed: false })
    const other = (pod: Pod) => ({ ...pod, metadata: { ...pod.metadata, labels: {} } })
    const ofOther = review('UPDATE', other(after), { oldObject: other(before) })
    expect(validatePod(ofOther, DEFAULT_ADMISSION).response).toEqual({ uid: 'u', allowed: true })
  })

  it('A second policy for a node is refused; its deletion is not', () => {
    const request = review('CREATE', aNodePolicy('b', 20, 'gpu-1'), { kind: { kind: 'VendorNodePolicy' } })
    const others = [aNodePolicy('gpu-1', 10)]
    expect(validatePolicy(request, others).response.status?.message).toMatch(/^spec.nodeName: /)
    expect(validatePolicy(request, []).response.allowed).toBe(true)
    expect(validatePolicy({ ...request, operation: 'DELETE' }, others).response.allowed).toBe(true)
  })

  it.each([
    null,
    {},
    { apiVersion: 'admission.k8s.io/v1beta1' },
    { apiVersion: 'admission.k8s.io/v1', request: 1 },
  ])('%j is not a review', (document) => {
    expect(requestOf(document)).toBeNull()
  })
})

it('While it observes, admission changes and refuses no pod, and warns of what it would refuse', () => {
  const options = { ...DEFAULT_ADMISSION, observes: true }
  const review = (object: Pod, operation = 'CREATE') => ({
    ...{ uid: 'u', operation, kind: { kind: 'Pod' }, object, oldObject: aPod() },
  })
  const bad = aPod({ [POD_ANNOTATIONS.podVram]: 'x' })
  const { response } = mutatePod(review(bad), options)
  expect([response.allowed, response.patch]).toEqual([true, undefined])
  expect(response.warnings?.[0]).toMatch(/^Headroom only observes; it would refuse the pod: .*pod-vram/)
  expect(mutatePod(review(aPod()), options).response).toEqual({ uid: 'u', allowed: true })
  for (const operation of ['CREATE', 'UPDATE'])
    expect(validatePod(review(bad, operation), options).response.allowed).toBe(true)
})
