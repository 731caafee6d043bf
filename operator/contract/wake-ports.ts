/** The ports of a pod at which a request brings it back while it is swapped out. */
import { MAX_WAKE_PORTS } from '../../protocol/agent-messages.ts'
import type { Container, Pod, Probe } from './kubernetes.ts'
import type { PodRequest } from './pod-request.ts'

/** Scrapers open it, whether the pod has work or not. */
const METRICS_PORT = 'metrics'

/**
 * TCP ports that its containers declare, whichever of them it is: only sockets of the stopped processes are
 * watched. The first 64, without:
 * 1. Ports that are named `metrics`.
 * 2. Ports that the kubelet opens for a probe. Probes that admission has rewritten are commands.
 * None if the annotation says so.
 */
export function wakePortsOf({ spec }: Pod, { wakesOnRequest }: PodRequest): readonly number[] {
  if (wakesOnRequest === false) return []
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  const probed = containers.flatMap(probedPorts)
  const declared = containers
    .flatMap(({ ports = [] }) => ports)
    .filter(({ name, protocol = 'TCP' }) => protocol === 'TCP' && name !== METRICS_PORT)
    .map(({ containerPort }) => containerPort)
  return [...new Set(declared)].filter((port) => !probed.includes(port)).slice(0, MAX_WAKE_PORTS)
}

function probedPorts(container: Container): readonly number[] {
  const { livenessProbe, startupProbe, readinessProbe, ports = [] } = container
  return [livenessProbe, startupProbe, readinessProbe].flatMap((probe) => {
    const port = portOf(probe)
    if (typeof port !== 'string') return port === undefined ? [] : [port]
    return ports.flatMap(({ name, containerPort }) => (name === port ? [containerPort] : []))
  })
}

function portOf({ httpGet, tcpSocket, grpc }: Probe = {}): number | string | undefined {
  return (httpGet ?? tcpSocket ?? grpc)?.port
}
