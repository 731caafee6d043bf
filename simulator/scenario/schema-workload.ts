/** Table of `workload`: tasks from a trace, from a random process, or single tasks. */
import { ACTIVITY_MODELS } from '../trace/activity.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import {
  boolean,
  byKey,
  byValue,
  choice,
  choiceOf,
  dictionary,
  duration,
  durationOrMs,
  integer,
  list,
  nullable,
  numberAbove,
  numberFrom,
  optional,
  pair,
  record,
  required,
  optionalAbsent,
  scalarOr,
  size,
  text,
  textLike,
} from '../document/rule.ts'
import type { GenerateItem } from './scenario.ts'
import { groupName } from './schema-fleet.ts'
import {
  MAX_ARGUMENT_LENGTH,
  MAX_ARGUMENTS,
  MAX_IDLE_SWAP_OUT_SECONDS,
  MAX_REQUEUES,
  MAX_RUNTIME_SECONDS,
  MAX_STOP_GRACE_SECONDS,
  MAX_TASK_GPUS,
  MAX_VRAM_MIB,
} from '../../protocol/limits.ts'
import { GPU_MODES, type GpuMode, NOSWAP, ON_NODE_LOSS, PRIORITIES } from '../../protocol/units.ts'
import { LAUNCH } from './schema-launch.ts'
import { startRule } from './schema-start.ts'

/** 100 years. */
export const MAX_TIME_MS = 3_153_600_000_000
/** 10 years of one task. */
export const MAX_WORK_MS = 315_360_000_000
export const MAX_GENERATED_TASKS = 10_000_000
export const DEFAULT_RUN_MS = 3_600_000
const MAX_GROUPS = 64
const MAX_PHASES = 100_000
/** A snapshot of a large cluster has one item per task. */
const MAX_ITEMS = 120_000
const MAX_WEIGHT = 1_000_000_000
const MAX_SIGMA = 5
const MAX_FACTOR = 1000
const MAX_BATCH = 10_000
const HOURS = 24

const ARRIVALS = {
  poisson: 'Exponential gaps.',
  regular: 'Equal gaps; the first arrival is one gap after `from`.',
} as const satisfies Readonly<Record<GenerateItem['arrivals'], string>>

const time = duration(0, MAX_TIME_MS)
const workTime = duration(1, MAX_WORK_MS)
const groups = list(groupName, 0, MAX_GROUPS)
const gpuMode = choice(...GPU_MODES)
const vram = size(1, MAX_VRAM_MIB)
const weight = numberAbove(0, MAX_WEIGHT)
const owner = nullable(text(256))
const labels = dictionary(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/, 'a label', text(256), 0, 64)
const maxRuntime = nullable(integer(1, MAX_RUNTIME_SECONDS))
const maxRequeues = nullable(integer(0, MAX_REQUEUES))
const stopGrace = nullable(integer(0, MAX_STOP_GRACE_SECONDS))
const idleSwapOut = nullable(integer(1, MAX_IDLE_SWAP_OUT_SECONDS))
const stopTakes = duration(0, 3_600_000)
const onNodeLoss = choice(...ON_NODE_LOSS)
/** How a task runs and ends: the same of generated and of single tasks. */
const RUN_POLICY = {
  max_runtime_seconds: optional(maxRuntime, null, 'Maximum run time.'),
  stop_grace_seconds: optional(
    stopGrace,
    null,
    'Time between SIGTERM and SIGKILL; null: the setting of the cluster.',
  ),
  stop_takes: optional(stopTakes, 0, 'Time from SIGTERM to the end of the task.'),
  on_node_loss: optional(onNodeLoss, TASK_DEFAULTS.onNodeLoss, 'Policy when the node becomes unreachable.'),
  max_requeues: optionalAbsent(
    maxRequeues,
    'Maximum number of requeues after attempts that ended within 10 minutes; null: no limit. ' +
      'Default: the configuration at submission.',
  ),
  ...LAUNCH,
  idle_swap_out_seconds: optional(
    idleSwapOut,
    null,
    'Idle time after which it may be swapped out; null: the setting of the cluster.',
  ),
  keep_warm: optional(
    boolean,
    false,
    'Swapped out only if the other candidates of its class do not free enough VRAM.',
  ),
}
const itemName = textLike(
  /^[A-Za-z][A-Za-z0-9_-]*$/,
  'a name of letters, digits, - and _ that begins with a letter',
  63,
)
const itemNameDoc =
  'Name of its random streams and prefix of its task IDs. null: g or t and the position in the list.'

// ── times, activity ──────────────────────────────────────────────────────────

const uniformTime = record(
  { min: required(workTime, 'Minimum.'), max: required(workTime, 'Maximum.') },
  { check: refuseFallingBounds },
)
const lognormalTime = record({
  median: required(workTime, 'Median.'),
  sigma: required(numberFrom(0, MAX_SIGMA), 'Standard deviation of the logarithm.'),
})
const timeWeights = dictionary(
  /^[1-9]\d{0,11}(ms|s|m|h|d)$/,
  'a time from 1ms on, with its unit',
  weight,
  1,
  1000,
)
const durationRule = scalarOr(
  workTime,
  byKey({
    uniform: record({ uniform: required(uniformTime, 'Uniform between the two.') }),
    exponential: record({
      exponential: required(record({ mean: required(workTime, 'Mean.') }), 'Exponential.'),
    }),
    lognormal: record({ lognormal: required(lognormalTime, 'Log-normal.') }),
    choice: record({
      choice: required(timeWeights, 'Each value with a probability in proportion to its weight.'),
    }),
  }),
)

const activity = scalarOr(
  choiceOf(ACTIVITY_MODELS),
  record({
    busy: required(durationRule, 'Duration of a busy run.'),
    idle: required(durationRule, 'Duration of an idle run.'),
    first: optional(
      choice('busy', 'idle'),
      'busy',
      'Initial state; a task that begins idle uses its GPU for 1 ms first.',
    ),
  }),
)

// ── a trace ──────────────────────────────────────────────────────────────────

const traceItemRule = record(
  {
    trace: required(text(1024), 'Trace file, relative to the folder of the scenario.'),
    name: optional(nullable(itemName), null, itemNameDoc),
    time_scale: optional(
      numberAbove(0, 1_000_000),
      1,
      'Factor of the time between arrivals; run times do not change.',
    ),
    sample: optional(numberAbove(0, 1), 1, 'Probability of including each task.'),
    from: optional(
      time,
      0,
      'Skips earlier arrivals, in the time of the trace; becomes the start of the scenario.',
    ),
    to: optional(nullable(time), null, 'Skips arrivals at or after this time, in the time of the trace.'),
    max_gpus: optional(nullable(integer(1, MAX_TASK_GPUS)), null, 'Skips tasks with more GPUs.'),
    activity: optional(
      nullable(activity),
      null,
      'Generates, for each seed, new activity within the time that each task is present; null: ' +
        'as in the trace.',
    ),
  },
  {
    otherNames: { until: 'to', start: 'from' },
    check: ({ from, to }, refuse) => {
      if (to !== null && to <= from) refuse('to', 'must be after from')
    },
  },
)

// ── a random process ─────────────────────────────────────────────────────────

const spread = { min: required(vram, 'Minimum.'), max: required(vram, 'Maximum.') }
const uniformVram = record(spread, { check: refuseFallingBounds })
const lognormalVram = record(
  {
    median: required(vram, 'Median.'),
    sigma: required(numberFrom(0, MAX_SIGMA), 'Standard deviation of the logarithm.'),
    min: optional(vram, 1, 'Minimum; smaller values are raised to it.'),
    max: optional(
      nullable(vram),
      null,
      'Maximum; larger values are lowered to it. null: the most that fits any GPU of the fleet ' +
        'besides its reserve.',
    ),
  },
  { check: refuseFallingBounds },
)
const vramRule = scalarOr(
  vram,
  byKey({
    uniform: record({ uniform: required(uniformVram, 'Uniform between the two.') }),
    lognormal: record({ lognormal: required(lognormalVram, 'Log-normal.') }),
    choice: record({
      choice: required(
        dictionary(/^[1-9]\d{0,6}$/, 'whole MiB', weight, 1, 1000),
        'Each value with a probability in proportion to its weight.',
      ),
    }),
  }),
)

const gpuWeights = dictionary(
  /^([1-9]\d{0,2}|10[01]\d|102[0-4])$/,
  `a number of GPUs from 1 to ${MAX_TASK_GPUS}`,
  weight,
  1,
  64,
)
const priorityWeights = dictionary(/^[0-4]$/, 'a priority from 0 to 4', weight, 1, 5)

const generateItemRule = record(
  {
    generate: required(choiceOf(ARRIVALS), 'Arrival process.'),
    name: optional(nullable(itemName), null, itemNameDoc),
    rate_per_hour: required(numberAbove(0, MAX_WEIGHT), 'Mean number of arrivals per hour.'),
    hourly: optional(
      nullable(list(numberFrom(0, MAX_FACTOR), HOURS, HOURS)),
      null,
      'Factor of the rate for each hour of the day (UTC); null: 1 all day.',
    ),
    batch: optional(integer(1, MAX_BATCH), 1, 'Number of tasks per arrival, all at the same instant.'),
    from: optional(time, 0, 'No arrivals before this time.'),
    until: optional(nullable(time), null, 'No arrivals at or after this time; null: until of clock.'),
    count: optional(nullable(integer(1, MAX_GENERATED_TASKS)), null, 'Maximum number of tasks.'),
    gpus: optional(
      scalarOr(integer(1, MAX_TASK_GPUS), gpuWeights),
      1,
      'Number of GPUs per task, or weights by number of GPUs.',
    ),
    vram_mib: optional(nullable(vramRule), null, 'Per GPU. Optional only for tasks that use whole GPUs.'),
    duration: optional(
      durationRule,
      { exponential: { mean: DEFAULT_RUN_MS } },
      'Run time of a task alone on idle GPUs.',
    ),
    activity: optional(activity, 'always-busy', 'GPU activity during the run time.'),
    priority: optional(
      scalarOr(choice(...PRIORITIES), priorityWeights),
      TASK_DEFAULTS.priority,
      'Priority class, or weights by class.',
    ),
    noswap: optional(
      numberFrom(0, 1),
      0,
      'Probability that a task may not be swapped out, in steps of 0.001.',
    ),
    groups: optional(groups, [], 'Target groups, any of which suffices; empty: the common pool.'),
    gpu_mode: optional(gpuMode, TASK_DEFAULTS.gpuMode, 'Whether tasks share GPUs.'),
    owner: optional(owner, null, 'Owner of the tasks.'),
    labels: optional(labels, {}, 'Free text for display and queries.'),
    ...RUN_POLICY,
    cancel_after: optional(
      nullable(durationRule),
      null,
      'Time from submission until the owner cancels an unfinished task; null: never.',
    ),
  },
  {
    otherNames: {
      gpu_count: 'gpus',
      to: 'until',
      rate: 'rate_per_hour',
      run: 'duration',
      model: 'activity',
      vram: 'vram_mib',
      daily: 'hourly',
    },
    check: ({ from, until, gpu_mode, vram_mib, noswap, hourly }, refuse) => {
      if (hourly?.every((factor) => factor === 0) === true)
        refuse('hourly', 'must be above 0 in one hour at least')
      if (until !== null && until <= from) refuse('until', 'must be after from')
      if (vram_mib === null && gpu_mode === 'shared')
        refuse('vram_mib', 'is needed unless gpu_mode is exclusive')
      if (permilleOf(noswap) === null) refuse('noswap', 'must be a probability in steps of 0.001')
    },
  },
)

/** Returns a probability in whole thousandths, which avoids rounding, or null if it has other decimals. */
export function permilleOf(probability: number): number | null {
  const permille = Math.round(probability * 1000)
  return Math.abs(probability * 1000 - permille) < 1e-9 ? permille : null
}

// ── one task ─────────────────────────────────────────────────────────────────

const workMs = durationOrMs(0, MAX_WORK_MS)
const durationWork = record({
  kind: required(choice('duration'), 'Continuous GPU work.'),
  ms: required(durationOrMs(1, MAX_WORK_MS), 'Duration on an idle GPU.'),
})
const phasesWork = record(
  {
    kind: required(choice('phases'), 'Alternating GPU work and pauses.'),
    phases: required(list(pair(workMs, workMs), 1, MAX_PHASES), 'Pairs of GPU work and idle time after it.'),
  },
  {
    check: ({ phases }, refuse) => {
      if (phases.every(([busyMs, idleMs]) => busyMs + idleMs === 0))
        refuse('phases', 'must last 1 ms or longer in all')
    },
  },
)
const burstsWork = record(
  {
    kind: required(choice('bursts'), 'Requests that arrive independently of the completion of earlier ones.'),
    at: required(
      list(pair(workMs, durationOrMs(1, MAX_WORK_MS)), 0, MAX_PHASES),
      'Pairs of arrival since the start and GPU work.',
    ),
    stayMs: required(workMs, 'Minimum time from start to end.'),
  },
  {
    check: ({ at, stayMs }, refuse) => {
      if (at.length === 0 && stayMs === 0) refuse('stayMs', 'must be 1 or more when there are no bursts')
      const fallsAt = at.findIndex(([offsetMs], i) => i > 0 && offsetMs < at[i - 1]![0])
      if (fallsAt !== -1)
        refuse(
          'at',
          `falls from ${at[fallsAt - 1]![0]} to ${at[fallsAt]![0]} ms; bursts stand in the order of arrival`,
        )
    },
  },
)

const taskRule = record(
  {
    id: required(
      textLike(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, 'an ID of letters, digits, dot, - and _', 128),
      'ID of the task in all results.',
    ),
    at: optional(time, 0, 'Time of submission.'),
    name: optional(nullable(text(256)), null, 'Display name.'),
    gpus: optional(integer(1, MAX_TASK_GPUS), TASK_DEFAULTS.gpuCount, 'Number of GPUs, all on one node.'),
    vram_mib: optional(nullable(vram), null, 'Per GPU. Optional only for a task that uses whole GPUs.'),
    gpu_mode: optional(gpuMode, TASK_DEFAULTS.gpuMode, 'Whether it shares its GPUs.'),
    noswap: optional(choice(...NOSWAP), TASK_DEFAULTS.noswap, '1: the task is never swapped out.'),
    priority: optional(choice(...PRIORITIES), TASK_DEFAULTS.priority, 'Priority class; 0 is the highest.'),
    groups: optional(groups, [], 'Target groups, any of which suffices; empty: the common pool.'),
    labels: optional(labels, {}, 'Free text for display and queries.'),
    owner: optional(owner, null, 'Owner of the task.'),
    command: optional(
      nullable(list(text(MAX_ARGUMENT_LENGTH), 1, MAX_ARGUMENTS)),
      null,
      'Command of the task; not used in a simulation.',
    ),
    ...RUN_POLICY,
    run: optional(nullable(workTime), null, 'Run time of the task alone. Without run and work: 1h.'),
    activity: optional(activity, 'always-busy', 'GPU activity during run.'),
    work: optional(
      nullable(byValue('kind', { duration: durationWork, phases: phasesWork, bursts: burstsWork })),
      null,
      'Detailed work, as in a trace.',
    ),
    alloc: optional(
      list(pair(workMs, vram), 0, 10_000),
      [],
      'Growth: pairs of time since the start and MiB per GPU from then on.',
    ),
    cancel_at: optional(nullable(time), null, 'Time at which the owner cancels it.'),
    state: optional(
      nullable(startRule),
      null,
      'State at the start; null: submitted at its time. The work of the task is its remaining work.',
    ),
  },
  { otherNames: { gpu_count: 'gpus', duration: 'run', vram: 'vram_mib' }, check: checkTask },
)

const taskItemRule = record({ task: required(taskRule, 'One task.') })

export const workloadRule = list(
  byKey({ trace: traceItemRule, generate: generateItemRule, task: taskItemRule }),
  0,
  MAX_ITEMS,
)

type Refuse = (field: string | null, detail: string) => void

interface TaskFields {
  readonly at: number
  readonly vram_mib: number | null
  readonly gpu_mode: GpuMode
  readonly run: number | null
  readonly activity: unknown
  readonly work: unknown
  readonly alloc: ReadonlyArray<readonly [number, number]>
  readonly cancel_at: number | null
}

function checkTask(task: TaskFields, refuse: Refuse): void {
  if (task.vram_mib === null && task.gpu_mode === 'shared')
    refuse('vram_mib', 'is needed unless gpu_mode is exclusive')
  if (task.work !== null && task.run !== null)
    refuse('run', 'says the same as work; only one of them may stand here')
  if (task.work !== null && task.activity !== 'always-busy')
    refuse('activity', 'goes with run; work already says when the GPU works')
  if (task.cancel_at !== null && task.cancel_at < task.at) refuse('cancel_at', 'must not be before at')
  let [latestMs, mostMib] = [-1, task.vram_mib ?? 0]
  for (const [i, [atMs, mib]] of task.alloc.entries()) {
    if (atMs <= latestMs) return refuse('alloc', `step ${i}: ${atMs} ms is not after ${latestMs} ms`)
    if (mib <= mostMib) return refuse('alloc', `step ${i}: ${mib} MiB is not more than ${mostMib} MiB`)
    ;[latestMs, mostMib] = [atMs, mib]
  }
}

function refuseFallingBounds(
  { min, max }: { readonly min: number; readonly max: number | null },
  refuse: Refuse,
): void {
  if (max !== null && max < min) refuse('max', 'must not be below min')
}
