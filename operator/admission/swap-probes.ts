/**
 * Probes of containers that may be swapped out. While a container is stopped its own endpoints do not answer:
 * liveness and startup probes would have the kubelet restart it, and a readiness probe would take it out of
 * its Service. The helper succeeds while the container's processes are stopped (readiness: repeats its last
 * result), and otherwise does the original check, to the pod's own address.
 */
import type { Container, Probe } from '../contract/kubernetes.ts'

export const HELPER_VOLUME = 'headroom-probe'
export const HELPER_FOLDER = '/headroom-probe'
const HELPER = `${HELPER_FOLDER}/probe`
export const POD_IP_VARIABLE = 'HEADROOM_POD_IP'

const KINDS = ['livenessProbe', 'startupProbe', 'readinessProbe'] as const
/** Those that make the kubelet restart the container. */
const RESTARTING = ['livenessProbe', 'startupProbe'] as const

/** Why the kubelet would restart the container while it is swapped out; null if it would not. */
export function restartingProbe(container: Container): string | null {
  const kind = RESTARTING.find((each) => container[each] !== undefined)
  return kind === undefined ? null : `container ${container.name} has a ${kind}`
}

export function hasProbes(container: Container): boolean {
  return KINDS.some((kind) => container[kind] !== undefined)
}

/** The container with probes of the helper, or why one cannot be rewritten. */
export function withHelperProbes(container: Container): Container | { readonly refused: string } {
  let result = container
  for (const kind of KINDS) {
    const probe = container[kind]
    if (probe === undefined) continue
    const command = helperCommand(probe, container, kind)
    if (typeof command === 'string') return { refused: `${kind} of container ${container.name} ${command}` }
    const { httpGet: _http, tcpSocket: _tcp, grpc: _grpc, ...timing } = probe
    result = { ...result, [kind]: { ...timing, exec: { command } } }
  }
  return result
}

/** The arguments of the helper, or what is in the way. */
function helperCommand(
  { exec, httpGet, tcpSocket, grpc }: Probe,
  container: Container,
  kind: (typeof KINDS)[number],
): readonly string[] | string {
  const start = [HELPER, ...(kind === 'readinessProbe' ? ['--repeat-last'] : [])]
  if (exec !== undefined) {
    const command = exec.command ?? []
    if (command[0] === HELPER) return command
    return command.length === 0 ? 'has no command' : [...start, 'exec', '--', ...command]
  }
  if (httpGet !== undefined) {
    if (httpGet.host !== undefined) return 'has a host of its own'
    const port = portOf(httpGet.port, container)
    if (port === null) return `names the unknown port ${httpGet.port}`
    const headers = (httpGet.httpHeaders ?? []).flatMap(({ name, value }) => [
      '--header',
      `${name}: ${value}`,
    ])
    const scheme = (httpGet.scheme ?? 'HTTP').toLowerCase()
    return [...start, 'http', '--scheme', scheme, '--port', port, ...headers, '--', httpGet.path ?? '/']
  }
  if (tcpSocket !== undefined) {
    if (tcpSocket.host !== undefined) return 'has a host of its own'
    const port = portOf(tcpSocket.port, container)
    return port === null ? `names the unknown port ${tcpSocket.port}` : [...start, 'tcp', '--port', port]
  }
  if (grpc !== undefined) return [...start, 'grpc', '--port', String(grpc.port), '--', grpc.service ?? '']
  return 'is of an unknown kind'
}

function portOf(port: number | string, { ports = [] }: Container): string | null {
  if (typeof port === 'number') return String(port)
  const named = ports.find(({ name }) => name === port)
  return named === undefined ? null : String(named.containerPort)
}

/** Copies the helper into the pod. Allowed by the Pod Security level `restricted`. */
export function helperContainer(image: string): Container {
  return {
    name: HELPER_VOLUME,
    image,
    command: ['/headroom-probe-helper', 'install', HELPER],
    volumeMounts: [{ name: HELPER_VOLUME, mountPath: HELPER_FOLDER }],
    resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '16Mi' } },
    securityContext: {
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      runAsNonRoot: true,
      runAsUser: 65_532,
      readOnlyRootFilesystem: true,
      seccompProfile: { type: 'RuntimeDefault' },
    },
  }
}
