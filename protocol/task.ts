/**
 * A task, defined once: the request of a client, the specification that the controller keeps, and the fields
 * with their ranges in the bodies of REST and of the wire (`task-body.ts` converts between them).
 */
import {
  flag,
  ABSOLUTE_PATH,
  IMAGE_REFERENCE,
  integer,
  inWords,
  NO_NUL,
  oneOf,
  optional,
  orNull,
  record,
  required,
  SHA_256,
  unsafe,
  withDefault,
} from './fields.ts'
import type { Value } from './fields.ts'
import {
  MAX_IDLE_SWAP_OUT_SECONDS,
  MAX_IMAGE_LENGTH,
  MAX_PATH_LENGTH,
  MAX_REQUEUES,
  MAX_RUNTIME_SECONDS,
  MAX_STOP_GRACE_SECONDS,
  TASK_DEFAULTS,
} from './limits.ts'
import {
  hostPath,
  image,
  mounts,
  ports,
  sha256,
  swapEngineOrNull,
  swapHooksOrNull,
  type SwapEngine,
  type SwapHooks,
} from './message-fields.ts'
import { cpus, memoryMib, pidsLimit, vramLimitMib, type ResourceLimits } from './resource-limits.ts'
import { ON_NODE_LOSS, REQUESTED_SWAP_METHODS } from './units.ts'
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, OnNodeLoss, Priority, SwapMethod } from './units.ts'

/** The same in the request and in the specification. */
export interface TaskBase {
  readonly gpuCount: number
  readonly gpuMode: GpuMode
  readonly noswap: NoSwap
  readonly priority: Priority
  /** Groups it may run in, any of them; empty means the common pool. */
  readonly groups: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  readonly owner: string | null
  /** The command that the GPU server runs; null makes the task a lease. */
  readonly command: readonly string[] | null
}

/** A submission whose fields are valid each for itself; the engine checks rules that span fields. */
export interface TaskRequest extends TaskBase, RequestedRunPolicy {
  /** Given by scenarios and idempotent clients; null: the controller draws a UUID. */
  readonly id: string | null
  readonly name: string | null
  /** Per GPU; null only for an exclusive task. */
  readonly vramMib: Mib | null
}

/**
 * The request as the controller keeps it. `noswap`, `priority`, `labels`, and while pending `vramMib`,
 * `groups` and `onNodeLoss`, may be changed later.
 */
export interface TaskSpec extends TaskBase, RunPolicy {
  /** A UUID; in scenarios the given name. */
  readonly id: string
  /** Submission number: total order of arrival. */
  readonly seq: number
  readonly name: string
  /** Demand per GPU; 0 only for an exclusive task, which then takes a whole GPU. */
  readonly vramMib: Mib
  readonly maxRequeues: number | null
  readonly submittedAt: Instant
}

/**
 * What a request says about running and ending. Most parts pass it on as one object, so that a new field is
 * added here and in `task-body.ts`, and then only where it has an effect.
 */
export interface RequestedRunPolicy {
  readonly maxRuntimeSeconds: number | null
  /** Null or omitted: the default of the cluster. */
  readonly stopGraceSeconds?: number | null
  readonly onNodeLoss: OnNodeLoss
  /** Null: no limit. Omitted: the configured value at the time of submission. */
  readonly maxRequeues?: number | null
  /** Reference to the container image in which the command runs; null or omitted: on the host. */
  readonly image?: string | null
  /** SHA-256 of the manifest of its uploaded folder; null or omitted: none. */
  readonly workdir?: string | null
  /** Folder on the host in which the command starts; null or omitted: its work folder. */
  readonly cwd?: string | null
  /** Names of the data folders that it mounts; omitted: none. */
  readonly mounts?: readonly string[]
  /** Null or omitted: none of its own. */
  readonly limits?: ResourceLimits | null
  /** Null or omitted: none of its own. */
  readonly environment?: TaskEnvironment | null
  /** Ports on which it serves requests; omitted: none declared. */
  readonly ports?: readonly TaskPort[]
  /** Whether requests wake it while it is swapped out; null or omitted: not declared. */
  readonly wakeOnRequest?: boolean | null
  /** Idle time after which it may be swapped out; null or omitted: the setting of the cluster. */
  readonly idleSwapOutSeconds?: number | null
  /** Last victim of its class; omitted: no. */
  readonly keepWarm?: boolean
  /** Null or omitted: the driver's. `none` is kept as noswap 1. */
  readonly swapMethod?: SwapMethod | null
  /** How it is told to move its data; null or omitted: on its control socket. */
  readonly swapHooks?: SwapHooks | null
  /** Set for method `engine`; null or omitted: another method. */
  readonly swapEngine?: SwapEngine | null
}

/** Where a command runs. */
export type TaskSurroundings = Pick<RunPolicy, 'image' | 'workdir' | 'cwd' | 'mounts'>

/** Environment variables of a task. Their values play no part in decisions. */
export interface TaskEnvironment {
  /** Variables whose values the request gave, in order of name. */
  readonly names: readonly string[]
  /** Variables whose values are secrets of the owner: the name of the secret by variable. */
  readonly secrets: Readonly<Record<string, string>>
  /** All values, encrypted; null where they are not kept: in recordings, and once the task has ended. */
  readonly sealed: string | null
}

/** The same as the controller and its store keep it. */
export interface RunPolicy {
  readonly maxRuntimeMs: DurationMs | null
  /** Grace period between SIGTERM and SIGKILL; null or omitted: the default of the cluster. */
  readonly stopGraceMs?: DurationMs | null
  readonly onNodeLoss: OnNodeLoss
  /**
   * Maximum number of requeues after attempts that ended soon after their start; null or omitted: no limit.
   */
  readonly maxRequeues?: number | null
  /** Null or omitted: the command runs on the host. */
  readonly image?: string | null
  /** Null or omitted: its work folder is empty at the start. */
  readonly workdir?: string | null
  /** Null or omitted: the command starts in its work folder. */
  readonly cwd?: string | null
  /** Omitted: it mounts no data folder. */
  readonly mounts?: readonly string[]
  /** Null or omitted: none of its own. */
  readonly limits?: ResourceLimits | null
  /** Null or omitted: none of its own. */
  readonly environment?: TaskEnvironment | null
  /** Ports on which it serves requests; omitted: none declared. */
  readonly ports?: readonly TaskPort[]
  /** Whether requests wake it while it is swapped out; null or omitted: not declared. */
  readonly wakeOnRequest?: boolean | null
  /** Idle time after which it may be swapped out; null or omitted: the setting of the cluster. */
  readonly idleSwapOutSeconds?: number | null
  /** Last victim of its class; omitted: no. */
  readonly keepWarm?: boolean
  /** Null or omitted: the driver's. `none` is kept as noswap 1. */
  readonly swapMethod?: SwapMethod | null
  /** How it is told to move its data; null or omitted: on its control socket. */
  readonly swapHooks?: SwapHooks | null
  /** Set for method `engine`; null or omitted: another method. */
  readonly swapEngine?: SwapEngine | null
}

export const DEFAULT_RUN_POLICY: RequestedRunPolicy = {
  maxRuntimeSeconds: null,
  onNodeLoss: TASK_DEFAULTS.onNodeLoss,
}

const SWAP_HOOKS = 'How it is told, with swap_method hooks; null: by messages on its control socket'

/** Passed on as one object by most parts (`task.ts`). */
export const RUN_POLICY = record({
  max_runtime_seconds: orNull(integer(1, MAX_RUNTIME_SECONDS), 'null: no limit'),
  stop_grace_seconds: optional(
    orNull(
      integer(0, MAX_STOP_GRACE_SECONDS),
      'From SIGTERM to SIGKILL, at most max_stop_grace_seconds; null: stop_grace_seconds of the cluster',
    ),
  ),
  on_node_loss: oneOf(ON_NODE_LOSS, 'What happens when its node is silent for longer than its run lease'),
  max_requeues: optional(
    orNull(
      integer(0, MAX_REQUEUES),
      'Limit of requeues after attempts under 10 min; null: none; default: max_requeues of the cluster',
    ),
  ),
  image: optional(
    orNull(
      image('Container image in which the command runs, [registry/]path[:tag][@digest]; null: on the host'),
    ),
  ),
  ports: optional(ports('TCP ports on which the command serves; a request to another wakes nothing')),
  wake_on_request: optional(
    orNull(
      flag(),
      'Whether a request brings it back while it is swapped out. null: it does, and so do probes and eager ' +
        'returns unless it declares ports',
    ),
  ),
  workdir: optional(
    orNull(
      sha256(
        'SHA-256 of the manifest of an uploaded folder (PUT /blobs/{hash}), which the work folder of ' +
          'each attempt contains at its start; null: the work folder is empty',
      ),
    ),
  ),
  cwd: optional(
    orNull(
      hostPath(
        'Folder on the host of the GPU server in which the command starts, entered as the user of the ' +
          'task; null: its work folder',
      ),
    ),
  ),
  mounts: optional(
    mounts(
      'Names of data folders that GPU servers offer: the task runs only where all of them are offered. ' +
        'In a container, each is mounted at /mnt/NAME',
    ),
  ),
  memory_mib: optional(
    orNull(
      memoryMib(
        'Limit of host memory. Where a swap-out copies VRAM into the process, the node adds the VRAM on ' +
          'all its GPUs to it; null: none',
      ),
    ),
  ),
  cpus: optional(orNull(cpus('Processors that it may use at once; null: no limit'))),
  pids_limit: optional(
    orNull(pidsLimit('Processes and threads at once; null: none on the host, 4096 in a container')),
  ),
  vram_limit_mib: optional(
    orNull(
      vramLimitMib(
        'The most VRAM that it may use on each GPU, at least vram_mib: a task that uses more is ended, and ' +
          'a growth beyond it is refused; null: no limit',
      ),
    ),
  ),
  idle_swap_out_seconds: optional(
    orNull(
      integer(1, MAX_IDLE_SWAP_OUT_SECONDS),
      'Idle time after which it may be swapped out; null: idle_swap_out_seconds of the cluster',
    ),
  ),
  keep_warm: optional(
    unsafe<boolean>(
      flag(
        'It is swapped out only if the other candidates of its class (P0, or all others) do not free ' +
          'enough VRAM',
      ),
    ),
  ),
  swap_method: optional(
    orNull(
      oneOf(REQUESTED_SWAP_METHODS),
      'driver: the driver copies its VRAM while it is stopped. hooks: it moves its data itself when told, ' +
        'and keeps running. engine: the same for an inference server. none: the same as noswap 1. ' +
        'null: driver',
    ),
  ),
  swap_hooks: optional(swapHooksOrNull(SWAP_HOOKS)),
  swap_engine: optional(
    swapEngineOrNull('The inference server that is told to sleep and to wake up, with swap_method engine'),
  ),
})
export type RunPolicyBody = Required<Value<typeof RUN_POLICY>>
export type TaskPort = RunPolicyBody['ports'][number]

const { properties } = RUN_POLICY

const IMAGE_IN_WORDS = `${IMAGE_REFERENCE.description}, of at most ${MAX_IMAGE_LENGTH} characters, or null`

/** Every body that REST reads is free of halves of surrogate pairs, and tools cannot generate this range. */
const CWD = unsafe<string | null>({ ...properties.cwd, pattern: '^/[^\\u0000]*$' })
const ARGUMENT = { ...NO_NUL, pattern: '^[^\\u0000]*$' }
const CWD_IN_WORDS = `${ABSOLUTE_PATH.description}, of at most ${MAX_PATH_LENGTH} characters, or null`

/** The run policy in a request to REST. */
export const RUN_POLICY_REQUEST = {
  max_runtime_seconds: optional(withDefault(properties.max_runtime_seconds, null)),
  stop_grace_seconds: optional(withDefault(properties.stop_grace_seconds, null)),
  on_node_loss: optional(withDefault(properties.on_node_loss, TASK_DEFAULTS.onNodeLoss)),
  max_requeues: properties.max_requeues,
  image: optional(inWords(withDefault(properties.image, null), IMAGE_IN_WORDS)),
  ports: optional(withDefault(properties.ports, [])),
  wake_on_request: optional(withDefault(properties.wake_on_request, null)),
  workdir: optional(inWords(withDefault(properties.workdir, null), `${SHA_256.description}, or null`)),
  cwd: optional(inWords(withDefault(CWD, null), CWD_IN_WORDS)),
  mounts: optional(withDefault(properties.mounts, [])),
  memory_mib: optional(withDefault(properties.memory_mib, null)),
  cpus: optional(withDefault(properties.cpus, null)),
  pids_limit: optional(withDefault(properties.pids_limit, null)),
  vram_limit_mib: optional(withDefault(properties.vram_limit_mib, null)),
  idle_swap_out_seconds: optional(withDefault(properties.idle_swap_out_seconds, null)),
  keep_warm: optional(withDefault(properties.keep_warm, false)),
  swap_method: optional(withDefault(properties.swap_method, null)),
  swap_hooks: optional(withDefault(swapHooksOrNull(SWAP_HOOKS, ARGUMENT), null)),
  swap_engine: optional(withDefault(properties.swap_engine, null)),
}
/** The run policy of a task in an answer. */
export const RUN_POLICY_VIEW = required(properties)
