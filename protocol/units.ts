/**
 * The units and closed sets of values of all parts of Headroom. Quantities are integers, so that arithmetic
 * on them is exact. Source: design rule "no floating point decides anything" (docs/architecture.md).
 */

/** VRAM or host memory in mebibytes. Whole numbers only. */
export type Mib = number

/** A percentage, 0..1000 for overcommit. Whole numbers only. */
export type Percent = number

/**
 * A point in time: milliseconds since the epoch of the clock in use (Unix epoch live, scenario start in a
 * simulation).
 */
export type Instant = number

/** A length of time in milliseconds. */
export type DurationMs = number

/** Microseconds: the unit of the utilization and starvation counters. */
export type Microseconds = number

/** Priority class: 0 is highest (written P0), 4 lowest. */
export const PRIORITIES = [0, 1, 2, 3, 4] as const
export type Priority = (typeof PRIORITIES)[number]

/** 0: the task may be swapped out. 1: it stays in physical VRAM (specification 2.3). */
export const NOSWAP = [0, 1] as const
export type NoSwap = (typeof NOSWAP)[number]

export const GPU_MODES = ['shared', 'exclusive'] as const
export type GpuMode = (typeof GPU_MODES)[number]

/**
 * How the bytes of a task leave VRAM and return: the GPU's driver copies them while the task is stopped, or
 * the task moves them itself when it is told to, and keeps running; `engine` is told as its kind expects.
 */
export const SWAP_METHODS = ['driver', 'hooks', 'engine'] as const
export type SwapMethod = (typeof SWAP_METHODS)[number]
/** Inference servers that can sleep. */
export const ENGINE_KINDS = ['vllm', 'sglang'] as const
/** The names in a request; `none` is the same as `noswap` 1. */
export const REQUESTED_SWAP_METHODS = [...SWAP_METHODS, 'none'] as const
export type RequestedSwapMethod = (typeof REQUESTED_SWAP_METHODS)[number]

/** Protocols of a declared port of a task. */
export const PORT_PROTOCOLS = ['tcp', 'http'] as const

/** What happens to a placed task whose node is silent for longer than its run lease. */
export const ON_NODE_LOSS = ['wait', 'fail', 'requeue'] as const
export type OnNodeLoss = (typeof ON_NODE_LOSS)[number]

/** Kind of the GPUs of a node: real, declared in a file, or simulated. */
export const DEVICE_KINDS = ['nvidia', 'process', 'simulated'] as const
export type DeviceKind = (typeof DEVICE_KINDS)[number]

/** The users that the tasks of a node run as. */
export const TASK_IDENTITIES = ['uid_per_attempt', 'task_user', 'root', 'server_user'] as const
export type TaskIdentityKind = (typeof TASK_IDENTITIES)[number]

/**
 * What a GPU server can do for a task that asks for it. A task is placed only on servers that name every
 * feature it requires; a server ignores fields that it does not know, so it would run such a task otherwise.
 */
export const FEATURES = [
  'image',
  'files',
  'env',
  'secrets',
  'mounts',
  'limits',
  'ports',
  'attach',
  'prepare',
  'channels',
  'swap_hooks',
  'swap_engine',
  'vram_limit',
] as const
export type Feature = (typeof FEATURES)[number]
/**
 * The feature of a server that offers the data folder of this name; `mounts` stands for any name, as
 * simulated servers offer.
 */
export type MountFeature = `mount:${string}`
export const mountFeature = (name: string): MountFeature => `mount:${name}`

/** A swapped-out task is still running. `none`: not started on the node yet. */
export const RESIDENCIES = ['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in'] as const
export type Residency = (typeof RESIDENCIES)[number]

/** `pending` has no placement; `assigned`, `running` and `unreachable` have one; the others are final. */
export const TASK_STATES = [
  'pending',
  'assigned',
  'running',
  'unreachable',
  'completed',
  'failed',
  'cancelled',
  'lost',
] as const
export type TaskState = (typeof TASK_STATES)[number]

/**
 * An exact state, or a list: `running` and `completed` of the specification, which have several states,
 * `succeeded` (exit code 0) and `failed` (failed, lost).
 */
export const TASK_STATE_FILTERS = [
  'all',
  'pending',
  'running',
  'completed',
  'succeeded',
  'failed',
  'assigned',
  'unreachable',
  'cancelled',
  'lost',
] as const
