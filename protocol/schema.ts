/**
 * Every message of the protocol as a table: field, kind, range, maximum length. `messages.ts` describes their
 * meaning.
 */
import type {
  AllocationWantedEvent,
  AttemptRecord,
  AttemptRef,
  Body,
  Boot,
  CommandResult,
  DeviceKind,
  Envelope,
  EventsAck,
  FinishedEvent,
  GpuReport,
  GrantCommand,
  Heartbeat,
  Hello,
  Leader,
  Lease,
  LogChunk,
  LogStream,
  NodeEvent,
  NodeEvents,
  NodeSettings,
  RefusalReason,
  ReadAttempt,
  ReadLog,
  Refused,
  ReserveBreachedEvent,
  ResidencyEvent,
  StartCommand,
  StartRefused,
  StartedEvent,
  StateReset,
  StopCommand,
  SwapCommand,
  TaskIdentityKind,
  TaskReport,
  UseEvent,
  Welcome,
} from './messages.ts'
import type { GpuMode, NoSwap, OnNodeLoss, Priority, WireResidency } from './units.ts'
import { CLIENT_BODIES } from './client-schema.ts'
import { PROTOCOL_VERSION } from './messages.ts'
import { every, flag, integer, list, oneOf, optional, orNull, record, tagged, text } from './schema-field.ts'

/** Maximum length of an encoded message (docs/protocol.md, principle 3). */
export const MAX_MESSAGE_BYTES = 256 * 1024
/** Attempts that live on a node plus unacknowledged attempts that ended there: the capacity of a snapshot. */
export const MAX_ATTEMPTS_PER_NODE = 1024
/** Entries of an outbox in one message. */
export const MAX_EVENTS = 256
/** Length of a device's detail about the end of a task, in UTF-16 code units. */
export const MAX_DETAIL_LENGTH = 512
export const MAX_REFUSAL_CODE_LENGTH = 40

/** Bytes of a task's output in one message; base64 adds a third. */
export const MAX_LOG_BYTES = 128 * 1024

const MAX_GPUS = 16
/** 16 TiB on one GPU. */
const MAX_VRAM_MIB = 16_777_216
/** 1 PiB on one node. */
const MAX_HOST_MIB = 1_073_741_824
/** 16 TiB/s. */
const MAX_HOST_LINK_MIB_PER_S = 16_777_216
const MAX_RESERVE_MIB = 1_048_576
/** A sender needs some thousand years to reach it, and the next number is still exact. */
const MAX_COUNT = 2_251_799_813_685_248
const MAX_ATTEMPT = 2_147_483_647
const MAX_HEARTBEAT_MS = 60_000
const MAX_RUN_LEASE_MS = 86_400_000
const MAX_STOP_GRACE_MS = 3_600_000
const MAX_ARGUMENTS = 256
const MAX_ARGUMENT_LENGTH = 4096
/** For a task or an owner, in UTF-16 code units. */
const MAX_NAME_LENGTH = 1000

const count = integer(0, MAX_COUNT)
const milliseconds = integer(0, MAX_COUNT)
const vramMib = integer(0, MAX_VRAM_MIB)
const id = text(1, 200)
const reason = text(0, 1000)
const stopGrace = integer(0, MAX_STOP_GRACE_MS)
const noswap = every<NoSwap>()(0, 1)
const residency = every<WireResidency>()('none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in')
const gpuIndexes = list(integer(0, MAX_GPUS - 1), 1, MAX_GPUS, 'no_duplicates')

const attempt = { task_id: id, attempt: integer(1, MAX_ATTEMPT) }
const attemptRef = record<AttemptRef>(attempt)
const attemptRefs = list(attemptRef, 0, MAX_ATTEMPTS_PER_NODE)
const boot = record<Boot>({ counter: count, random: text(1, 64) })

// ── node → controller ────────────────────────────────────────────────────────

const gpuReport = record<GpuReport>({
  index: integer(0, MAX_GPUS - 1),
  model: text(0, 200),
  physical_mib: vramMib,
  foreign_mib: vramMib,
})

const taskReport = record<TaskReport>({
  ...attempt,
  residency,
  generation: count,
  gpus: gpuIndexes,
  vram_mib: vramMib,
  wants_gpu: flag,
  idle_ms: milliseconds,
})

const snapshot = {
  node_id: id,
  gpus: list(gpuReport, 0, MAX_GPUS, 'index_is_place'),
  tasks: list(taskReport, 0, MAX_ATTEMPTS_PER_NODE),
  finished_unacked: attemptRefs,
}

const hello = record<Hello>({
  op: oneOf('hello'),
  ...snapshot,
  name: text(1, 200),
  address: text(0, 300),
  host_swap_mib: integer(0, MAX_HOST_MIB),
  host_link_mib_per_s: optional(integer(1, MAX_HOST_LINK_MIB_PER_S)),
  signals_wanted: flag,
  device: every<DeviceKind>()('nvidia', 'process', 'simulated'),
  allow_exec: flag,
  max_attempts: optional(integer(1, MAX_ATTEMPTS_PER_NODE)),
  task_identity: optional(every<TaskIdentityKind>()('uid_per_attempt', 'task_user', 'root', 'server_user')),
})

const heartbeat = record<Heartbeat>({ op: oneOf('heartbeat'), ...snapshot })

const entry = { n: count, ...attempt }

const use = record<UseEvent>({ kind: oneOf('gpu_wanted', 'gpu_used'), ...entry, idle_ms: milliseconds })

const startRefused = record<StartRefused>({
  cause: every<StartRefused['cause']>()('host', 'task', 'passing'),
  code: text(1, MAX_REFUSAL_CODE_LENGTH),
})

const nodeEvent = tagged<NodeEvent, 'kind'>('kind', {
  started: record<StartedEvent>({ kind: oneOf('started'), ...entry, wants_gpu: flag }),
  finished: record<FinishedEvent>({
    kind: oneOf('finished'),
    ...entry,
    outcome: every<FinishedEvent['outcome']>()('completed', 'failed', 'stopped', 'lease_ended', 'lost'),
    exit_code: orNull(integer(-2_147_483_648, 4_294_967_295)),
    detail: orNull(text(0, MAX_DETAIL_LENGTH, 'no_nul')),
    start_refused: optional(startRefused),
  }),
  residency: record<ResidencyEvent>({
    kind: oneOf('residency'),
    ...entry,
    residency,
    generation: count,
    because: orNull(text(0, 200)),
  }),
  gpu_wanted: use,
  gpu_used: use,
  allocation_wanted: record<AllocationWantedEvent>({
    kind: oneOf('allocation_wanted'),
    ...entry,
    mib: vramMib,
  }),
  reserve_breached: record<ReserveBreachedEvent>({
    kind: oneOf('reserve_breached'),
    ...entry,
    gpu: integer(0, MAX_GPUS - 1),
    free_mib: vramMib,
  }),
})

const events = record<NodeEvents>({
  op: oneOf('events'),
  node_id: id,
  entries: list(nodeEvent, 1, MAX_EVENTS),
})

const result = record<CommandResult>({
  op: oneOf('result'),
  ...attempt,
  outcome: every<CommandResult['outcome']>()(
    'accepted',
    'refused',
    'running',
    'finished',
    'gone',
    'never_seen',
  ),
  reason: orNull(
    every<RefusalReason>()(
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
      'device_failed',
      'disk_failed',
    ),
  ),
  residency,
  generation: count,
  start_refused: optional(startRefused),
})

const logStream = every<LogStream>()('stdout', 'stderr')
const log = record<LogChunk>({
  op: oneOf('log'),
  ...attempt,
  stream: logStream,
  offset: count,
  data: text(0, Math.ceil(MAX_LOG_BYTES / 3) * 4),
  is_ended: flag,
})

// ── controller → node ────────────────────────────────────────────────────────

const settings = record<NodeSettings>({
  heartbeat_ms: integer(1, MAX_HEARTBEAT_MS),
  run_lease_ms: integer(1, MAX_RUN_LEASE_MS),
  safety_reserve_mib: integer(0, MAX_RESERVE_MIB),
})

const commandLine = orNull(list(text(0, MAX_ARGUMENT_LENGTH, 'no_nul'), 1, MAX_ARGUMENTS))

const command = {
  ...attempt,
  valid_until_mono: milliseconds,
  node_boot: boot,
  safety_reserve_mib: optional(integer(0, MAX_RESERVE_MIB)),
}

const start = record<StartCommand>({
  op: oneOf('start'),
  ...command,
  gpus: gpuIndexes,
  vram_mib: integer(1, MAX_VRAM_MIB),
  gpu_mode: every<GpuMode>()('shared', 'exclusive'),
  noswap,
  priority: every<Priority>()(0, 1, 2, 3, 4),
  on_node_loss: every<OnNodeLoss>()('wait', 'fail', 'requeue'),
  command: orNull(list(text(0, MAX_ARGUMENT_LENGTH, 'no_nul'), 1, MAX_ARGUMENTS)),
  name: optional(text(0, MAX_NAME_LENGTH)),
  owner: optional(orNull(text(0, MAX_NAME_LENGTH))),
  stop_grace_ms: optional(stopGrace),
})

const swap = record<SwapCommand>({
  op: oneOf('swap_out', 'swap_in'),
  ...command,
  generation: count,
  force_active: flag,
})

const growth = record<GrantCommand>({
  op: oneOf('grant', 'refuse_growth', 'set_noswap'),
  ...command,
  mib: vramMib,
  noswap,
  reason: orNull(reason),
})

const commands = {
  start,
  stop: record<StopCommand>({ op: oneOf('stop'), ...command, reason, grace_ms: optional(stopGrace) }),
  swap_out: swap,
  swap_in: swap,
  grant: growth,
  refuse_growth: growth,
  set_noswap: growth,
}

/** All operations by name; a message names exactly one. */
export const BODIES = tagged<Body, 'op'>('op', {
  hello,
  heartbeat,
  events,
  result,
  log,
  attempt: record<AttemptRecord>({
    op: oneOf('attempt'),
    ...attempt,
    name: orNull(text(0, MAX_NAME_LENGTH)),
    owner: orNull(text(0, MAX_NAME_LENGTH)),
    command: commandLine,
    is_lease: flag,
    gpu_mode: every<GpuMode>()('shared', 'exclusive'),
    noswap,
    priority: every<Priority>()(0, 1, 2, 3, 4),
    on_node_loss: every<OnNodeLoss>()('wait', 'fail', 'requeue'),
  }),
  read_attempt: record<ReadAttempt>({ op: oneOf('read_attempt'), ...attempt }),
  read_log: record<ReadLog>({
    op: oneOf('read_log'),
    ...attempt,
    stream: logStream,
    offset: count,
    max_bytes: integer(1, MAX_LOG_BYTES),
  }),
  welcome: record<Welcome>({
    op: oneOf('welcome'),
    settings,
    stop: attemptRefs,
    unknown: optional(attemptRefs),
  }),
  lease: record<Lease>({ op: oneOf('lease'), settings, stop: attemptRefs, unknown: optional(attemptRefs) }),
  events_ack: record<EventsAck>({ op: oneOf('events_ack'), up_to: count }),
  state_reset: record<StateReset>({ op: oneOf('state_reset'), counter_above: integer(0, MAX_COUNT - 1) }),
  refused: record<Refused>({ op: oneOf('refused'), reason: text(0, 200) }),
  leader: record<Leader>({ op: oneOf('leader'), epoch: count, id: text(1, 200) }),
  ...commands,
  ...CLIENT_BODIES,
})

/** The version comes first: a message of another version is not checked any further. */
export const ENVELOPE = record<Envelope>({
  v: oneOf(PROTOCOL_VERSION),
  id: text(1, 200),
  sent_mono: milliseconds,
  boot,
  seq: count,
  epoch: count,
  controller: optional(text(1, 64)),
  event_seq: optional(count),
  body: BODIES,
})
