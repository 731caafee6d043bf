/** The only change that the test makes to the shipped docker-compose.yml: the device of the GPU server. */
import { isDeepStrictEqual } from 'node:util'

type Value = unknown
type Fields = Readonly<Record<string, Value>>

/** A compose file, or what `docker-compose config` prints. */
export interface ComposeConfig {
  readonly services: Readonly<Record<string, Fields>>
  readonly volumes?: Fields
  readonly networks?: Fields
}

/** GPUs declared in a file of the image, with processes of this host. */
const TEST_DEVICE = ['--device', 'process', '--inventory', '/app/inventory.yaml']
const RUNTIME = 'runc'

/**
 * The override that the test starts.
 * @param more additional options of the GPU server, only for a negative control
 */
export function overrideOf({ services }: ComposeConfig, more: readonly string[] = []): ComposeConfig {
  const command = withTestDevice(services['gpu-server']?.['command'])
  return { services: { 'gpu-server': { runtime: RUNTIME, command: [...command, ...more] } } }
}

/**
 * Differences besides the device, as `path: shipped → tested`. Both are merged configurations, as printed by
 * `docker-compose config`.
 */
export function differences(shipped: ComposeConfig, tested: ComposeConfig): readonly string[] {
  const { 'gpu-server': server = {}, ...others } = shipped.services
  const expected = {
    ...shipped,
    services: { ...others, 'gpu-server': { ...server, ...overrideOf(shipped).services['gpu-server'] } },
  }
  return differing('', expected, tested)
}

function withTestDevice(command: Value): readonly string[] {
  const words = Array.isArray(command) ? command.map(String) : []
  const at = words.indexOf('--device')
  if (at < 0 || words[at + 1] !== 'nvidia')
    throw new Error('docker-compose.yml: the command of gpu-server has no --device nvidia')
  return words.toSpliced(at, 2, ...TEST_DEVICE)
}

function differing(path: string, expected: Value, tested: Value): readonly string[] {
  if (isFields(expected) && isFields(tested)) {
    const names = new Set([...Object.keys(expected), ...Object.keys(tested)])
    return [...names].flatMap((name) =>
      differing(path === '' ? name : `${path}.${name}`, expected[name], tested[name]),
    )
  }
  const [a, b] = [expected, tested].map((value) => (path.endsWith('.command') ? value : ordered(value)))
  return isDeepStrictEqual(a, b) ? [] : [`${path}: ${JSON.stringify(expected)} → ${JSON.stringify(tested)}`]
}

/** Compose merges lists as sets; the words of a command have an order. */
function ordered(value: Value): Value {
  return Array.isArray(value)
    ? value.map((each) => JSON.stringify(each)).toSorted((a, b) => (a < b ? -1 : Number(a > b)))
    : value
}

function isFields(value: Value): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

interface Forbidden {
  readonly override: ComposeConfig
  /** Where the difference must be reported. */
  readonly path: string
}

/**
 * Overrides that would prove less than the shipped file promises. Each must be noticed, alone and together
 * with the others.
 */
export const FORBIDDEN: readonly Forbidden[] = [
  ofServer('user', '1000:1000'),
  ofServer('volumes', ['/run/docker.sock:/run/docker.sock']),
  ofServer('cap_add', ['DAC_READ_SEARCH']),
  ofServer('cap_drop', ['SYS_ADMIN']),
  ofServer('pid', 'service:controller'),
  ofServer('ipc', 'host'),
  ofServer('network_mode', 'host'),
  ofServer('userns_mode', 'host'),
  ofServer('privileged', true),
  ofServer('read_only', false),
  ofServer('group_add', ['0']),
  ofServer('security_opt', ['seccomp:unconfined']),
  ofServer('tmpfs', ['/etc/headroom']),
  ofServer('devices', ['/dev/null:/dev/null']),
  ofServer('environment', { NODE_STATE_DIR: '/tmp' }),
  ofServer('command', ['gpu-server', ...TEST_DEVICE, '--allow-exec', '--stop-tasks', '--task-user', 'root']),
  ofServer('image', 'headroom-controller'),
  ofServer('entrypoint', ['sh']),
  { override: { services: { nats: { user: '0:0' } } }, path: 'services.nats.user' },
  { override: { services: { stranger: { image: 'headroom-controller' } } }, path: 'services.stranger' },
  {
    override: { services: {}, volumes: { keys: { driver_opts: { o: 'bind', type: 'none', device: '/' } } } },
    path: 'volumes.keys',
  },
  { override: { services: {}, networks: { default: { internal: true } } }, path: 'networks' },
]

function ofServer(key: string, value: Value): Forbidden {
  return { override: { services: { 'gpu-server': { [key]: value } } }, path: `services.gpu-server.${key}` }
}
