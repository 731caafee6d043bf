/**
 * Probes of containers that may be swapped out. While a container is stopped its own endpoints do not answer:
 * liveness and startup probes would have the kubelet restart it, and a readiness probe would take it out of
 * its Service. The helper (operator/probe-helper) succeeds while the container's processes are stopped
 * (readiness: repeats its last result), and otherwise does the original check, to the pod's own address.
 */
import type { Container, Pod, PodSpec, Probe } from '../contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../contract/names.ts'
import { withVariable } from './container-fields.ts'

/** Name of the volume and of the init container. */
export const HELPER_NAME = 'headroom-probe'
const FOLDER = '/headroom-probe'
const HELPER = `${FOLDER}/probe`
/** Path in the image of the helper. */
export const HELPER_PROGRAM = '/headroom-probe-helper'
const POD_IP_VARIABLE = 'HEADROOM_POD_IP'

const KINDS = ['livenessProbe', 'startupProbe', 'readinessProbe'] as const
type ProbeKind = (typeof KINDS)[number]
/** Those that make the kubelet restart the container. */
const RESTARTING = ['livenessProbe', 'startupProbe'] as const
/** Values of Kubernetes where a probe has none. */
const DEFAULT_TIMEOUT_SECONDS = 1
const DEFAULT_FAILURES = 3

interface Refused {
  readonly refused: string
}

/**
 * The pod with probes that a swap-out does not fail, or why it must not be swapped out.
 * @param names of the containers that get GPUs
 * @param helperImage null: probes are not rewritten
 */
export function withSwapProbes(
  pod: Pod,
  names: readonly string[],
  helperImage: string | null,
): { readonly spec: PodSpec } | Refused {
  const { spec } = pod
  const { containers, initContainers = [], volumes = [] } = spec
  // Without the annotation sidecars, which are init containers, are stopped as well.
  const areAllStopped = pod.metadata.annotations?.[POD_ANNOTATIONS.containers] === undefined
  const isStopped = ({ name, restartPolicy }: Container): boolean =>
    names.includes(name) || (areAllStopped && restartPolicy === 'Always')
  const stopped = [...initContainers, ...containers].filter(isStopped)
  if (helperImage === null) {
    const why = stopped.map(restartingProbe).find((each) => each !== null)
    return why === undefined ? { spec } : { refused: why }
  }
  if (!stopped.some((container) => KINDS.some((kind) => container[kind] !== undefined))) return { spec }
  const helper = initContainers.find(({ name }) => name === HELPER_NAME)
  const volume = volumes.find(({ name }) => name === HELPER_NAME)
  if ((helper !== undefined && helper.command?.[0] !== HELPER_PROGRAM) || (volume && !volume['emptyDir']))
    return { refused: `the name ${HELPER_NAME} is taken by an init container or a volume` }
  const rewritten = new Map<Container, Container>()
  for (const container of stopped) {
    const result = withHelperProbes(container)
    if ('refused' in result) return result
    rewritten.set(container, result)
  }
  const others = initContainers.filter((each) => each !== helper).map((each) => rewritten.get(each) ?? each)
  return {
    spec: {
      ...spec,
      containers: containers.map((each) => rewritten.get(each) ?? each),
      // First: the next one may be a sidecar that waits for its startup probe.
      initContainers: [helper ?? helperContainer(helperImage), ...others],
      volumes: volume ? volumes : [...volumes, { name: HELPER_NAME, emptyDir: { sizeLimit: '32Mi' } }],
    },
  }
}

/** Why the kubelet would restart the container while it is swapped out; null if it would not. */
function restartingProbe(container: Container): string | null {
  const kind = RESTARTING.find((each) => container[each] !== undefined)
  return kind === undefined ? null : `container ${container.name} has a ${kind}`
}

function withHelperProbes(container: Container): Container | Refused {
  let result = container
  for (const kind of KINDS) {
    const probe = container[kind]
    if (probe === undefined) continue
    const rewritten = helperProbe(probe, container, kind)
    if (typeof rewritten === 'string')
      return { refused: `${kind} of container ${container.name} ${rewritten}` }
    result = { ...result, [kind]: rewritten }
  }
  return result === container ? container : withHelperMount(result)
}

/** The probe by the helper, or what is in the way. */
function helperProbe(probe: Probe, container: Container, kind: ProbeKind): Probe | string {
  if (probe.exec?.command?.[0] === HELPER) return probe
  const check = checkOf(probe, container)
  if (typeof check === 'string') return check
  const { httpGet: _http, tcpSocket: _tcp, grpc: _grpc, ...timing } = probe
  const { timeoutSeconds = DEFAULT_TIMEOUT_SECONDS, failureThreshold = DEFAULT_FAILURES } = probe
  const remembers = kind === 'readinessProbe' ? ['--ready', `${FOLDER}/ready-${container.name}`] : []
  const [name = '', ...rest] = check
  return {
    ...timing,
    // The check itself keeps its time: the runtime needs some to start the helper.
    timeoutSeconds: timeoutSeconds + 1,
    // A helper that starts while the container is being stopped is stopped with it, and counts as failed.
    ...(failureThreshold < 2 ? { failureThreshold: 2 } : {}),
    exec: { command: [HELPER, name, '--timeout', String(timeoutSeconds), ...remembers, ...rest] },
  }
}

/** Kind, options and arguments, or what is in the way. */
function checkOf(
  { exec, httpGet, tcpSocket, grpc }: Probe,
  container: Container,
): readonly string[] | string {
  if (exec !== undefined) {
    const { command = [] } = exec
    return command.length === 0 ? 'has no command' : ['exec', '--', ...command]
  }
  if (grpc !== undefined) return ['grpc', '--port', String(grpc.port), '--', literal(grpc.service ?? '')]
  const target = httpGet ?? tcpSocket
  if (target === undefined) return 'is of an unknown kind'
  if (target.host !== undefined) return 'sets its own host'
  const port = portOf(target.port, container)
  if (port === null) return `refers to the unknown port ${target.port}`
  if (httpGet === undefined) return ['tcp', '--port', port]
  const { scheme = 'HTTP', httpHeaders = [], path = '/' } = httpGet
  const headers = httpHeaders.flatMap(({ name, value }) => ['--header', `${name}: ${literal(value)}`])
  return ['http', '--scheme', scheme.toLowerCase(), '--port', port, ...headers, '--', literal(path)]
}

/** The kubelet replaces $(NAME) in commands, and in no other part of a probe. */
function literal(text: string): string {
  return text.replaceAll('$', '$$$$')
}

function portOf(port: number | string, { ports = [] }: Container): string | null {
  if (typeof port === 'number') return String(port)
  const named = ports.find(({ name }) => name === port)
  return named === undefined ? null : String(named.containerPort)
}

function withHelperMount(container: Container): Container {
  const { volumeMounts = [] } = container
  const withIp = withVariable(container, {
    name: POD_IP_VARIABLE,
    valueFrom: { fieldRef: { fieldPath: 'status.podIP' } },
  })
  return volumeMounts.some(({ name }) => name === HELPER_NAME)
    ? withIp
    : { ...withIp, volumeMounts: [...volumeMounts, { name: HELPER_NAME, mountPath: FOLDER }] }
}

/**
 * Copies the helper into the pod. Allowed by the Pod Security level `restricted`; requests and limits are
 * equal, so that the pod keeps the QoS class Guaranteed.
 */
function helperContainer(image: string): Container {
  const amounts = { cpu: '100m', memory: '32Mi' }
  return {
    name: HELPER_NAME,
    image,
    command: [HELPER_PROGRAM, 'install', HELPER],
    volumeMounts: [{ name: HELPER_NAME, mountPath: FOLDER }],
    resources: { requests: amounts, limits: amounts },
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
