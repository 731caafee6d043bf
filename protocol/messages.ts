/**
 * Messages between the controller and GPU servers, version 1. Field names are those of the wire: snake_case,
 * MiB, milliseconds. `protocol/codec.ts` encodes them and checks input; a simulation passes them by
 * reference. docs/asyncapi.yaml is generated from these schemas, with their descriptions.
 */
import {
  count,
  flag,
  indexed,
  integer,
  list,
  NO_NUL,
  oneOf,
  optional,
  orNull,
  record,
  tagged,
  text,
} from './fields.ts'
import type { Value } from './fields.ts'
import {
  MAX_ATTEMPTS_PER_NODE,
  MAX_DETAIL_LENGTH,
  MAX_EVENTS,
  MAX_FEATURES,
  MAX_FEATURE_LENGTH,
  MAX_GPUS,
  MAX_HEARTBEAT_MS,
  MAX_HOST_LINK_MIB_PER_S,
  MAX_HOST_MIB,
  MAX_LOG_BYTES,
  MAX_RUN_LEASE_MS,
  MAX_SOCKET_PATH_LENGTH,
  MAX_COUNT,
} from './limits.ts'
import {
  attempt,
  commandLine,
  generation,
  gpuIndex,
  gpuIndexes,
  hostPath,
  id,
  image,
  mounts,
  imageDigest,
  passedOn,
  portAddresses,
  recordedName,
  reserveMib,
  residency,
  sha256,
  StartRefused,
  vramMib,
  wakeable,
  stopGraceMs,
  noswap,
  RequestCounts,
} from './message-fields.ts'
import { LIMITS_RECORD } from './resource-limits.ts'
import { PREPARATIONS, WAITING_IMAGES } from './preparing.ts'
import { type StartCommand, order } from './start-command.ts'
import { DEVICE_KINDS, FEATURES, SWAP_METHODS, TASK_IDENTITIES } from './units.ts'

/** An attempt of a task. */
const AttemptRef = record(attempt)
export type AttemptRef = Value<typeof AttemptRef>
const attemptRefs = (description: string) => list(AttemptRef, 0, MAX_ATTEMPTS_PER_NODE, description)

// ── node → controller ────────────────────────────────────────────────────────

const GpuReport = record({
  index: gpuIndex(),
  model: text(0, 200),
  physical_mib: vramMib('VRAM of the GPU'),
  foreign_mib: vramMib('VRAM that processes outside Headroom use'),
})
export type GpuReport = Value<typeof GpuReport>

const RESIDUAL = vramMib(
  'What it keeps in VRAM on each GPU while it is swapped out, as the device measures it. Absent: nothing',
)

/** One attempt that lives on the node. */
const TaskReport = record({
  ...attempt,
  residency,
  generation,
  gpus: gpuIndexes,
  vram_mib: vramMib('Demand on each GPU'),
  wants_gpu: flag('The task has GPU work'),
  idle_ms: count('Time since its last GPU work; 0 while it wants the GPU'),
  wakeable: optional(wakeable),
  residual_mib: optional(RESIDUAL),
})
export type TaskReport = Value<typeof TaskReport>

const snapshot = {
  node_id: id('The ID in the subject; another one is refused'),
  gpus: indexed(list(GpuReport, 0, MAX_GPUS, 'All GPUs of the node, by index'), MAX_GPUS),
  tasks: list(TaskReport, 0, MAX_ATTEMPTS_PER_NODE, 'Attempts that live on the node'),
  finished_unacked: attemptRefs('Attempts that ended and whose finished event is not acknowledged yet'),
  requests: optional(RequestCounts),
  ...PREPARATIONS,
}

export const Hello = record({
  op: oneOf(['hello']),
  ...snapshot,
  name: text(1, 200, 'Name of the node'),
  address: text(0, 300, 'Shown to operators'),
  host_swap_mib: integer(0, MAX_HOST_MIB, 'Host memory for swapped-out tasks'),
  host_link_mib_per_s: optional(
    integer(
      1,
      MAX_HOST_LINK_MIB_PER_S,
      'Total bandwidth of copies between host memory and GPUs, MiB/s. Absent: not configured. Decisions do ' +
        'not use it; simulations of the node do',
    ),
  ),
  signals_wanted: flag(
    'Tasks can announce that they want the GPU; if not, the controller probes (swap_in_probe_seconds)',
  ),
  device: oneOf(
    DEVICE_KINDS,
    'Kind of its GPUs: real, declared in a file (tasks are plain processes), or simulated',
  ),
  allow_exec: flag('The node runs commands; if not, only leases are placed on it'),
  max_attempts: optional(
    integer(
      1,
      MAX_ATTEMPTS_PER_NODE,
      'Maximum number of attempts at once: living ones, and ended ones whose finished event is not ' +
        'acknowledged. Absent from servers of earlier versions: the capacity of a snapshot',
    ),
  ),
  task_identity: optional(
    oneOf(
      TASK_IDENTITIES,
      'The users that its tasks run as: one per attempt; one for all tasks, different from the ' +
        'server’s; root; ' +
        'the server’s, which is not root. Absent from servers of earlier versions and from simulated ones',
    ),
  ),
  features: optional(
    list(
      text(1, MAX_FEATURE_LENGTH),
      0,
      MAX_FEATURES,
      `What it can do for tasks that ask for it: ${FEATURES.join(', ')}, and mount:NAME for each data ` +
        'folder that it offers; unknown names are kept. No task is placed on a server without a feature ' +
        'that it requires. Absent from servers of earlier versions: none',
    ),
  ),
})
export type Hello = Value<typeof Hello>

export const Heartbeat = record({ op: oneOf(['heartbeat']), ...snapshot })
export type Heartbeat = Value<typeof Heartbeat>

const entry = { n: count('Position in the outbox; grows without limit within a boot counter'), ...attempt }

const StartedEvent = record({
  kind: oneOf(['started']),
  ...entry,
  wants_gpu: flag('The task has GPU work'),
  image_digest: optional(
    imageDigest('Digest under which a registry has the image that runs. Absent: no image, or not known'),
  ),
})
export type StartedEvent = Value<typeof StartedEvent>

const FinishedEvent = record({
  kind: oneOf(['finished']),
  ...entry,
  outcome: oneOf(
    ['completed', 'failed', 'stopped', 'lease_ended', 'lost'],
    'completed: exit code 0. failed: another exit code, or a signal. stopped: by order of the controller. ' +
      'lease_ended: R4. lost: the process disappeared',
  ),
  exit_code: orNull(integer(-2_147_483_648, 4_294_967_295), 'Null: the process has none'),
  detail: orNull(text(0, MAX_DETAIL_LENGTH, undefined, NO_NUL)),
  start_refused: optional(
    record(
      StartRefused.properties,
      'The start was refused and the attempt never ran. The outcome is failed, for controllers that do not ' +
        'know this field',
    ),
  ),
})
export type FinishedEvent = Value<typeof FinishedEvent>

/** Characters. */
export const MAX_RESIDENCY_DETAIL = 200

const ResidencyEvent = record({
  kind: oneOf(['residency']),
  ...entry,
  residency,
  generation,
  because: orNull(
    text(0, 200),
    'Null: the residency is as ordered. Otherwise why the node ended up in it (woke_while_locked, ' +
      'copy_failed, …)',
  ),
  wakeable: optional(wakeable),
  residual_mib: optional(RESIDUAL),
  swap_method: optional(oneOf(SWAP_METHODS, 'How it left; only when it is swapped out. Absent: driver')),
  detail: optional(
    text(0, MAX_RESIDENCY_DETAIL, 'Why it cannot be swapped, in words; only with not_swappable'),
  ),
})
export type ResidencyEvent = Value<typeof ResidencyEvent>

const UseEvent = record({
  kind: oneOf(['gpu_wanted', 'gpu_used'], 'gpu_wanted: the task has GPU work. gpu_used: it became idle'),
  ...entry,
  idle_ms: count('Time since its last GPU use'),
})
export type UseEvent = Value<typeof UseEvent>

const AllocationWantedEvent = record({
  kind: oneOf(['allocation_wanted']),
  ...entry,
  mib: vramMib('The server blocks an allocation that would raise the task to this demand per GPU'),
})
export type AllocationWantedEvent = Value<typeof AllocationWantedEvent>

const ReserveBreachedEvent = record({
  kind: oneOf(['reserve_breached']),
  ...entry,
  gpu: gpuIndex(),
  free_mib: vramMib('Free VRAM, which is less than the reserve'),
})
export type ReserveBreachedEvent = Value<typeof ReserveBreachedEvent>

const NodeEvent = tagged('kind', {
  started: StartedEvent,
  finished: FinishedEvent,
  residency: ResidencyEvent,
  gpu_wanted: UseEvent,
  gpu_used: UseEvent,
  allocation_wanted: AllocationWantedEvent,
  reserve_breached: ReserveBreachedEvent,
})
export type NodeEvent = Value<typeof NodeEvent>

export const NodeEvents = record({
  op: oneOf(['events']),
  node_id: snapshot.node_id,
  entries: list(NodeEvent, 1, MAX_EVENTS, 'Oldest first; resent as a whole until acknowledged'),
})
export type NodeEvents = Value<typeof NodeEvents>

const REFUSAL_REASONS = [
  'stale_epoch',
  'other_boot',
  'expired',
  'no_lease',
  'old_attempt',
  'no_vram',
  'unknown_gpu',
  'stale_generation',
  'wants_gpu',
  'noswap',
  'contrary',
  'no_host_memory',
  'node_full',
  'exec_not_allowed',
  'environment_unreadable',
  'feature_missing',
  'device_failed',
  'disk_failed',
] as const
export type RefusalReason = (typeof REFUSAL_REASONS)[number]

/** The answer to a command: what the node knows about that attempt now (R7). */
export const CommandResult = record({
  op: oneOf(['result']),
  ...attempt,
  outcome: oneOf(['accepted', 'refused', 'running', 'finished', 'gone', 'never_seen']),
  reason: orNull(oneOf(REFUSAL_REASONS), 'Set when refused'),
  residency,
  generation,
  start_refused: optional(record(StartRefused.properties, 'For a refused start')),
})
export type CommandResult = Value<typeof CommandResult>

const stream = oneOf(['stdout', 'stderr'])
export type LogStream = ReadLog['stream']

/** The answer to `read_log`. */
export const LogChunk = record({
  op: oneOf(['log']),
  ...attempt,
  stream,
  offset: count(
    'Start of data: the requested offset, or the oldest byte that is still kept when that is later',
  ),
  data: text(0, Math.ceil(MAX_LOG_BYTES / 3) * 4, 'Bytes in base64; empty when the offset is at the end'),
  is_ended: flag('No more output will follow'),
})
export type LogChunk = Value<typeof LogChunk>

/** The answer to `read_attempt`: the attempt as it was started. */
export const AttemptRecord = record({
  op: oneOf(['attempt']),
  ...attempt,
  name: orNull(recordedName(), 'Null: the start did not name it'),
  owner: orNull(recordedName(), 'Null: none, or the start did not name it'),
  command: commandLine,
  image: optional(image('Container image in which the command runs. Absent: on the host')),
  workdir: optional(sha256('As in the start')),
  cwd: optional(hostPath('As in the start')),
  mounts: optional(mounts('As in the start')),
  limits: optional(LIMITS_RECORD),
  is_lease: flag('The attempt runs no command: its client keeps it alive'),
  port_addresses: optional(portAddresses),
  ...passedOn,
})
export type AttemptRecord = Value<typeof AttemptRecord>

/** The answer to `expect_process`. */
export const ProcessExpected = record({
  op: oneOf(['process_expected']),
  ...attempt,
  socket: text(1, MAX_SOCKET_PATH_LENGTH, 'Path of the Unix socket on the host'),
})
export type ProcessExpected = Value<typeof ProcessExpected>

// ── controller → node ────────────────────────────────────────────────────────

const NodeSettings = record({
  heartbeat_ms: integer(1, MAX_HEARTBEAT_MS, 'Time between heartbeats'),
  run_lease_ms: integer(1, MAX_RUN_LEASE_MS, 'Counts from the time the hello or heartbeat was sent (R4)'),
  safety_reserve_mib: reserveMib('VRAM that the node keeps free on each GPU'),
})
export type NodeSettings = Value<typeof NodeSettings>

const lease = {
  settings: NodeSettings,
  stop: attemptRefs(
    'Attempts that the controller has given up and the node must end, and preparations that are not wanted',
  ),
  unknown: optional(
    attemptRefs(
      'Attempts without a task: the node must end them when its next snapshot names them as well. ' +
        'Absent: none',
    ),
  ),
  images: WAITING_IMAGES,
}
export const Welcome = record({ op: oneOf(['welcome']), ...lease })
export type Welcome = Value<typeof Welcome>
export const Lease = record({ op: oneOf(['lease']), ...lease })
export type Lease = Value<typeof Lease>

export const EventsAck = record({
  op: oneOf(['events_ack']),
  up_to: count('Entries up to this number are durable at the controller'),
})
export type EventsAck = Value<typeof EventsAck>

/** The node's boot counter is unknown or contradictory: start again with a counter above this one (R6). */
export const StateReset = record({
  op: oneOf(['state_reset']),
  counter_above: integer(0, MAX_COUNT - 1, 'Start again with a boot counter above this one (R6)'),
})
export type StateReset = Value<typeof StateReset>

/** The message is not acceptable; the receiver changed nothing. */
export const Refused = record({ op: oneOf(['refused']), reason: text(0, 200) })
export type Refused = Value<typeof Refused>

/** The node gets the image and the files of a task that may start there; no VRAM is committed. */
export const PrepareCommand = record({
  op: oneOf(['prepare']),
  ...order,
  image: optional(image('Container image. Absent: none')),
  workdir: optional(sha256('As in the start. Absent: none')),
})
export type PrepareCommand = Value<typeof PrepareCommand>

export const StopCommand = record({
  op: oneOf(['stop']),
  ...order,
  reason: text(0, 1000),
  grace_ms: optional(
    stopGraceMs(
      'Time between SIGTERM and SIGKILL. Absent, or not known to the server: SIGKILL at once. ' +
        'A later stop can ' +
        'only shorten the time',
    ),
  ),
})
export type StopCommand = Value<typeof StopCommand>

export const SwapCommand = record({
  op: oneOf(['swap_out', 'swap_in']),
  ...order,
  generation: count('The residency generation that the decision was based on'),
  force_active: flag(
    'swap_out only: true when the cause is max_residency, so that a task that wants the GPU is ' +
      'swapped out too',
  ),
})
export type SwapCommand = Value<typeof SwapCommand>

/** The answer to allocation_wanted, or a change of noswap on a placed task. */
export const GrantCommand = record({
  op: oneOf(['grant', 'refuse_growth', 'set_noswap']),
  ...order,
  mib: vramMib('grant: the new demand per GPU'),
  noswap,
  reason: orNull(text(0, 1000)),
})
export type GrantCommand = Value<typeof GrantCommand>

export type Command = StartCommand | PrepareCommand | StopCommand | SwapCommand | GrantCommand

/** The leading controller, published every 2 s. */
export const Leader = record({
  op: oneOf(['leader']),
  epoch: count('The fencing token that the controller has made durable'),
  id: id('ID of the controller process; it changes at each start'),
})
export type Leader = Value<typeof Leader>

/** Reads what the server recorded about an attempt that lives there; answered by `attempt` or `refused`. */
export const ReadAttempt = record({ op: oneOf(['read_attempt']), ...attempt })
export type ReadAttempt = Value<typeof ReadAttempt>

/**
 * A process of the host may register for a lease within a minute by showing a token with this hash; answered
 * by `process_expected` or `refused`. A later one replaces it.
 */
export const ExpectProcess = record({
  op: oneOf(['expect_process']),
  ...attempt,
  token_sha256: sha256('SHA-256 of the token'),
})
export type ExpectProcess = Value<typeof ExpectProcess>

/** Reads the output of a task. Read only, so R3 does not apply; answered by `log` or `refused`. */
export const ReadLog = record({
  op: oneOf(['read_log']),
  ...attempt,
  stream,
  offset: count('Bytes since the start of the attempt'),
  max_bytes: integer(1, MAX_LOG_BYTES, 'Maximum length of the answer'),
})
export type ReadLog = Value<typeof ReadLog>
