/**
 * How the request of a task, its specification and the bodies of REST and of the wire follow from each other.
 */
import type { Mutable } from './fields.ts'
import { TASK_DEFAULTS } from './limits.ts'
import type { SwapEngine, SwapHooks } from './message-fields.ts'
import type {
  RequestedRunPolicy,
  RunPolicy,
  RunPolicyBody,
  TaskBase,
  TaskPort,
  TaskRequest,
  TaskSpec,
  TaskSurroundings,
} from './task.ts'
import { areSameLimits, limitsBodyOf, limitsIn, limitsOfBody, limitsRecordOf } from './resource-limits.ts'
import type { DurationMs, GpuMode, Instant, Mib, NoSwap, Priority, SwapMethod } from './units.ts'

type RequestedRunPolicyBody = { readonly [K in keyof RunPolicyBody]?: RunPolicyBody[K] | undefined }

/** The fields of a body that become a request; REST omits what the wire says as null. */
export interface TaskBody extends RequestedRunPolicyBody {
  readonly name?: string | null
  readonly vram_mib?: Mib | null
  readonly gpu_count?: number
  readonly gpu_mode?: GpuMode
  readonly noswap?: NoSwap
  readonly priority?: Priority
  readonly groups?: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly command?: readonly string[] | null
}

export function requestOfBody<I extends string | null>(
  body: TaskBody,
  id: I,
  owner: string | null,
): TaskRequest & { readonly id: I } {
  return {
    id,
    name: body.name ?? null,
    vramMib: body.vram_mib ?? null,
    gpuCount: body.gpu_count ?? TASK_DEFAULTS.gpuCount,
    gpuMode: body.gpu_mode ?? TASK_DEFAULTS.gpuMode,
    noswap: body.swap_method === 'none' ? 1 : (body.noswap ?? TASK_DEFAULTS.noswap),
    priority: body.priority ?? TASK_DEFAULTS.priority,
    groups: body.groups ?? [],
    labels: body.labels ?? {},
    owner,
    command: body.command ?? null,
    ...runPolicyOfBody(body),
  }
}

export function runPolicyOfBody(body: RequestedRunPolicyBody): RequestedRunPolicy {
  const { stop_grace_seconds: stopGraceSeconds = null, max_requeues: maxRequeues } = body
  return {
    maxRuntimeSeconds: body.max_runtime_seconds ?? null,
    ...(stopGraceSeconds === null ? {} : { stopGraceSeconds }),
    onNodeLoss: body.on_node_loss ?? TASK_DEFAULTS.onNodeLoss,
    ...(maxRequeues === undefined ? {} : { maxRequeues }),
    ...surroundingsIn(body),
    ...limitsIn(limitsOfBody(body)),
    ...servingIn({
      ports: body.ports,
      wakeOnRequest: body.wake_on_request,
      idleSwapOutSeconds: body.idle_swap_out_seconds,
      keepWarm: body.keep_warm,
      swapMethod: body.swap_method === 'none' ? null : body.swap_method,
      swapHooks: body.swap_hooks,
      swapEngine: body.swap_engine,
    }),
  }
}

/** @param maxRequeues the configured limit */
export function specOfRequest(
  request: TaskRequest,
  id: string,
  seq: number,
  maxRequeues: number | null,
  now: Instant,
): TaskSpec {
  const spec: Mutable<TaskSpec> = {
    id,
    seq,
    name: request.name ?? id,
    vramMib: request.vramMib ?? 0,
    gpuCount: request.gpuCount,
    gpuMode: request.gpuMode,
    noswap: request.noswap,
    priority: request.priority,
    groups: request.groups,
    labels: request.labels,
    owner: request.owner,
    command: request.command,
    maxRuntimeMs: milliseconds(request.maxRuntimeSeconds),
    onNodeLoss: request.onNodeLoss,
    maxRequeues: request.maxRequeues === undefined ? maxRequeues : request.maxRequeues,
    submittedAt: now,
  }
  const { stopGraceSeconds = null } = request
  if (stopGraceSeconds !== null) spec.stopGraceMs = stopGraceSeconds * 1000
  return Object.assign(spec, launchIn(request))
}

/** The specification inside a record of the store, which has more fields; older ones lack some. */
export function specOfRecord(record: TaskBase & RunPolicy & Omit<TaskSpec, 'maxRequeues'>): TaskSpec {
  const { stopGraceMs, maxRequeues = null } = record
  return {
    id: record.id,
    seq: record.seq,
    name: record.name,
    vramMib: record.vramMib,
    gpuCount: record.gpuCount,
    gpuMode: record.gpuMode,
    noswap: record.noswap,
    priority: record.priority,
    groups: record.groups,
    labels: record.labels,
    owner: record.owner,
    command: record.command,
    maxRuntimeMs: record.maxRuntimeMs,
    ...(stopGraceMs === undefined ? {} : { stopGraceMs }),
    onNodeLoss: record.onNodeLoss,
    maxRequeues,
    ...launchIn(record),
    submittedAt: record.submittedAt,
  }
}

/**
 * The request that gives this specification, without labels, command and environment, which play no part in
 * decisions.
 */
export function requestOfSpec(
  spec: TaskBase & RunPolicy & Pick<TaskSpec, 'id' | 'name' | 'vramMib'>,
): TaskRequest & { readonly id: string } {
  const { id, name, vramMib, gpuCount, gpuMode, noswap, priority, groups, owner } = spec
  const { stopGraceMs = null, maxRequeues } = spec
  return {
    id,
    name: name === id ? null : name,
    vramMib: vramMib > 0 ? vramMib : null,
    gpuCount,
    gpuMode,
    noswap,
    priority,
    groups,
    labels: {},
    command: null,
    owner,
    maxRuntimeSeconds: seconds(spec.maxRuntimeMs),
    ...(stopGraceMs === null ? {} : { stopGraceSeconds: stopGraceMs / 1000 }),
    onNodeLoss: spec.onNodeLoss,
    ...(maxRequeues === undefined ? {} : { maxRequeues }),
    ...servingIn(spec),
    ...surroundingsIn(spec),
    ...limitsIn(spec.limits),
  }
}

export function runPolicyBodyOf(spec: RunPolicy): RunPolicyBody {
  return {
    max_runtime_seconds: seconds(spec.maxRuntimeMs),
    stop_grace_seconds: seconds(spec.stopGraceMs ?? null),
    on_node_loss: spec.onNodeLoss,
    max_requeues: spec.maxRequeues ?? null,
    image: spec.image ?? null,
    ports: spec.ports ?? [],
    wake_on_request: spec.wakeOnRequest ?? null,
    workdir: spec.workdir ?? null,
    cwd: spec.cwd ?? null,
    mounts: spec.mounts ?? [],
    ...limitsBodyOf(spec.limits),
    idle_swap_out_seconds: spec.idleSwapOutSeconds ?? null,
    keep_warm: spec.keepWarm ?? false,
    swap_method: spec.swapMethod ?? null,
    swap_hooks: spec.swapHooks ?? null,
    swap_engine: spec.swapEngine ?? null,
  }
}

/** Returns the shortest body that requests this policy: defaults are omitted. */
export function briefRunPolicyBodyOf(policy: RequestedRunPolicy): Partial<RunPolicyBody> {
  const { maxRuntimeSeconds, stopGraceSeconds = null, onNodeLoss, maxRequeues } = policy
  const { ports = [], wakeOnRequest = null, idleSwapOutSeconds = null } = policy
  const { swapMethod = null, swapHooks = null, swapEngine = null } = policy
  return {
    ...(maxRuntimeSeconds === null ? {} : { max_runtime_seconds: maxRuntimeSeconds }),
    ...(stopGraceSeconds === null ? {} : { stop_grace_seconds: stopGraceSeconds }),
    ...(onNodeLoss === TASK_DEFAULTS.onNodeLoss ? {} : { on_node_loss: onNodeLoss }),
    ...(maxRequeues === undefined ? {} : { max_requeues: maxRequeues }),
    ...surroundingsIn(policy),
    ...(policy.limits === null || policy.limits === undefined ? {} : limitsRecordOf(policy.limits)),
    ...(ports.length === 0 ? {} : { ports }),
    ...(wakeOnRequest === null ? {} : { wake_on_request: wakeOnRequest }),
    ...(idleSwapOutSeconds === null ? {} : { idle_swap_out_seconds: idleSwapOutSeconds }),
    ...(policy.keepWarm === true ? { keep_warm: true } : {}),
    ...(swapMethod === null ? {} : { swap_method: swapMethod }),
    ...(swapHooks === null ? {} : { swap_hooks: swapHooks }),
    ...(swapEngine === null ? {} : { swap_engine: swapEngine }),
  }
}

/** Compares what a repeated request must say again; fields that may change later are not compared. */
export function isSameRequest(spec: TaskBase & RunPolicy & { name: string }, request: TaskRequest): boolean {
  return (
    (request.name === null || spec.name === request.name) &&
    spec.gpuCount === request.gpuCount &&
    spec.gpuMode === request.gpuMode &&
    spec.maxRuntimeMs === milliseconds(request.maxRuntimeSeconds) &&
    spec.onNodeLoss === request.onNodeLoss &&
    (spec.wakeOnRequest ?? null) === (request.wakeOnRequest ?? null) &&
    (spec.idleSwapOutSeconds ?? null) === (request.idleSwapOutSeconds ?? null) &&
    (spec.keepWarm ?? false) === (request.keepWarm ?? false) &&
    (spec.swapMethod ?? null) === (request.swapMethod ?? null) &&
    JSON.stringify(spec.swapHooks ?? null) === JSON.stringify(request.swapHooks ?? null) &&
    JSON.stringify(spec.swapEngine ?? null) === JSON.stringify(request.swapEngine ?? null) &&
    JSON.stringify(spec.ports ?? []) === JSON.stringify(request.ports ?? []) &&
    JSON.stringify(surroundingsIn(spec)) === JSON.stringify(surroundingsIn(request)) &&
    areSameLimits(spec.limits, request.limits) &&
    JSON.stringify(spec.command) === JSON.stringify(request.command)
  )
}

type SwapField = 'swapMethod' | 'swapHooks' | 'swapEngine'
type ServingField = 'ports' | 'wakeOnRequest' | 'idleSwapOutSeconds' | 'keepWarm' | SwapField
type Launch = TaskSurroundings & Pick<RunPolicy, 'limits' | 'environment' | ServingField>

/** Surroundings, limits, environment and how it serves, for a task that has them. */
function launchIn(task: Launch): Launch {
  const { limits = null, environment = null } = task
  const launch: Mutable<Launch> = Object.assign(surroundingsIn(task), servingIn(task))
  if (limits !== null) launch.limits = limits
  if (environment !== null) launch.environment = environment
  return launch
}

type Given<T> = { readonly [K in keyof T]?: T[K] | undefined }

function servingIn(task: Given<Pick<RunPolicy, ServingField>>): Pick<RunPolicy, ServingField> {
  const { ports = [], wakeOnRequest = null, idleSwapOutSeconds = null } = task
  const serving: Mutable<Pick<RunPolicy, ServingField>> = swapMethodIn(task)
  if (ports.length > 0) serving.ports = ports
  if (wakeOnRequest !== null) serving.wakeOnRequest = wakeOnRequest
  if (idleSwapOutSeconds !== null) serving.idleSwapOutSeconds = idleSwapOutSeconds
  if (task.keepWarm === true) serving.keepWarm = true
  return serving
}

/** Absent fields: the driver's method; told on its control socket. */
export function swapMethodIn(task: Given<Pick<RunPolicy, SwapField>>): {
  readonly swapMethod?: SwapMethod
  readonly swapHooks?: SwapHooks
  readonly swapEngine?: SwapEngine
} {
  const { swapMethod = null, swapHooks = null, swapEngine = null } = task
  const how: { swapMethod?: SwapMethod; swapHooks?: SwapHooks; swapEngine?: SwapEngine } = {}
  if (swapMethod !== null) how.swapMethod = swapMethod
  if (swapHooks !== null) how.swapHooks = swapHooks
  if (swapEngine !== null) how.swapEngine = swapEngine
  return how
}

/** Returns the name that two ports share, or null. */
export function sharedPortName(ports: readonly TaskPort[]): string | null {
  const names = new Set<string>()
  for (const { name } of ports) {
    if (names.has(name)) return name
    names.add(name)
  }
  return null
}

type SwapBody = Pick<TaskBody, 'swap_method' | 'swap_hooks' | 'swap_engine' | 'command'>

/** Returns the field and text of what is wrong with the swap method of a request, or null. */
export function faultInSwapMethod(body: SwapBody): readonly [string, string] | null {
  const { swap_method: method = null, swap_hooks: hooks = null, swap_engine: engine = null } = body
  const movesItself = method === 'hooks' || method === 'engine'
  if (movesItself && (body.command ?? null) === null)
    return ['swap_method', `${method} needs a command: a lease moves nothing itself`]
  if (hooks !== null && method !== 'hooks') return ['swap_hooks', 'needs swap_method hooks']
  if (engine !== null && method !== 'engine') return ['swap_engine', 'needs swap_method engine']
  if (engine === null && method === 'engine') return ['swap_engine', 'is required with swap_method engine']
  if (engine?.level !== undefined && engine.kind !== 'vllm') return ['swap_engine.level', 'is for vllm only']
  for (const name of hooks === null ? [] : (['suspend', 'resume'] as const)) {
    const { command, port, path } = hooks?.[name] ?? {}
    const isRequest = port !== undefined && path !== undefined && command === undefined
    const isCommand = command !== undefined && port === undefined && path === undefined
    if (!isRequest && !isCommand) return [`swap_hooks.${name}`, 'must be a command, or a port and a path']
  }
  return null
}

/** Returns the part of a task that is kept after its end and recorded: without values. */
export function withoutValues<T extends Pick<RunPolicy, 'environment'>>(task: T): T {
  const { environment = null } = task
  return environment === null ? task : { ...task, environment: { ...environment, sealed: null } }
}

/** A field that a task does not use is absent, as in records of earlier versions. */
export function surroundingsIn(task: Given<TaskSurroundings>): {
  readonly image?: string
  readonly workdir?: string
  readonly cwd?: string
  readonly mounts?: readonly string[]
} {
  const { image = null, workdir = null, cwd = null, mounts = [] } = task
  const surroundings: { image?: string; workdir?: string; cwd?: string; mounts?: readonly string[] } = {}
  if (image !== null) surroundings.image = image
  if (workdir !== null) surroundings.workdir = workdir
  if (cwd !== null) surroundings.cwd = cwd
  if (mounts.length > 0) surroundings.mounts = mounts
  return surroundings
}

function milliseconds(inSeconds: number | null): DurationMs | null {
  return inSeconds === null ? null : inSeconds * 1000
}

function seconds(ms: DurationMs | null): number | null {
  return ms === null ? null : ms / 1000
}
