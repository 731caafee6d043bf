/** At which ports of a pod a request wakes it. */
import { expect, it } from 'vitest'
import type { Container, ContainerPort, Pod } from '../../../operator/contract/kubernetes.ts'
import { DOMAIN, POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { forbiddenChanges, podRequestOf } from '../../../operator/contract/pod-request.ts'
import { wakePortsOf } from '../../../operator/contract/wake-ports.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

const WEB: ContainerPort = { name: 'web', containerPort: 8000 }

function podWith(containers: readonly Partial<Container>[], annotation?: string): Pod {
  const pod = aPod({ [POD_ANNOTATIONS.wakeOnRequest]: annotation })
  const named = containers.map((each, index) => ({ name: `c${index}`, ...each }))
  return { ...pod, spec: { ...pod.spec, containers: named } }
}

function portsOf(pod: Pod): readonly number[] {
  const request = podRequestOf(pod)
  if (!request.ok) expect.fail(JSON.stringify(request.faults))
  return wakePortsOf(pod, request.value)
}

it.each<[string, readonly ContainerPort[], readonly number[]]>([
  ['Declared ports', [WEB, { containerPort: 8001, protocol: 'TCP' }], [8000, 8001]],
  ['No port named metrics', [WEB, { name: 'metrics', containerPort: 9090 }], [8000]],
  ['A port whose name only contains metrics', [{ name: 'metrics-api', containerPort: 1 }], [1]],
  [
    'No UDP and no SCTP',
    [WEB, ...['UDP', 'SCTP'].map((protocol) => ({ containerPort: 53, protocol }))],
    [8000],
  ],
  ['The port of the container, not that of the host', [{ ...WEB, hostPort: 80 }], [8000]],
  ['A port once', [WEB, { name: 'again', containerPort: 8000 }], [8000]],
  ['None that is not declared', [], []],
])('%s: of %j count %j', (_what, ports, wake) => {
  expect(portsOf(podWith([{ ports }]))).toEqual(wake)
})

it('The ports of all containers count, and a pod has at most 64', () => {
  const sidecar = { name: 'proxy', restartPolicy: 'Always', ports: [{ containerPort: 9000 }] }
  const two = podWith([{ ports: [WEB] }, { ports: [{ containerPort: 8001 }] }])
  expect(portsOf({ ...two, spec: { ...two.spec, initContainers: [sidecar] } })).toEqual([8000, 8001, 9000])
  const many = Array.from({ length: 65 }, (_, index) => ({ containerPort: index + 1 }))
  expect(portsOf(podWith([{ ports: many }]))).toEqual(many.slice(0, 64).map((each) => each.containerPort))
})

it.each<[string, Partial<Container>]>([
  ['livenessProbe', { livenessProbe: { httpGet: { port: 8000 } } }],
  ['startupProbe', { startupProbe: { tcpSocket: { port: 8000 } } }],
  ['readinessProbe', { readinessProbe: { grpc: { port: 8000 } } }],
  ['probe of the name', { readinessProbe: { httpGet: { port: 'web' } } }],
])('A port that the kubelet opens for a %s wakes nothing', (_kind, probes) => {
  const ports = [WEB, { name: 'other', containerPort: 8001 }]
  expect(portsOf(podWith([{ ports, ...probes }]))).toEqual([8001])
})

it('A probe of a sidecar names its own ports; the network is that of the pod', () => {
  const main = { ports: [WEB] }
  const sidecar = (port: number | string): Partial<Container> => ({
    ports: [{ name: 'web', containerPort: 9000 }],
    readinessProbe: { httpGet: { port } },
  })
  expect(portsOf(podWith([main, sidecar('web')]))).toEqual([8000])
  expect(portsOf(podWith([main, sidecar(8000)]))).toEqual([9000])
})

it('A probe that is a command leaves the ports as they are', () => {
  const readinessProbe = { exec: { command: ['/headroom-probe/probe', 'http', '--port', '8000'] } }
  expect(portsOf(podWith([{ ports: [WEB], readinessProbe }]))).toEqual([8000])
})

it.each<[string | undefined, boolean | null, readonly number[]]>([
  [undefined, null, [8000]],
  ['true', true, [8000]],
  ['false', false, []],
])('The annotation %s is read as %s, and the ports are %j', (annotation, declared, ports) => {
  const pod = podWith([{ ports: [WEB] }], annotation)
  expect(podRequestOf(pod)).toMatchObject({ ok: true, value: { wakesOnRequest: declared } })
  expect(portsOf(pod)).toEqual(ports)
})

it.each(['TRUE', '1', '', 'no'])('The annotation "%s" is refused with its path, later too', (value) => {
  const path = `metadata.annotations[${DOMAIN}/wake-on-request]`
  const faults = [{ path, message: `must be "true" or "false", not ${JSON.stringify(value)}` }]
  const pod = podWith([{ ports: [WEB] }], value)
  expect(podRequestOf(pod)).toEqual({ ok: false, faults })
  expect(forbiddenChanges(aPod().metadata, pod.metadata)).toEqual(faults)
})

it('The annotation may be changed at any time', () => {
  const [on, off] = [podWith([], 'true').metadata, podWith([], 'false').metadata]
  expect(forbiddenChanges(on, off)).toEqual([])
  expect(forbiddenChanges(off, aPod().metadata)).toEqual([])
})
