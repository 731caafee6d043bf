/** The scenario fields of the form. All others are edited in the text. Pure. */
import type { Path } from './scenario-text.ts'

export interface FormField {
  readonly name: string
  /** Possible paths, the usual one first. */
  readonly paths: readonly Path[]
  readonly help: string
  /** The field can be left empty. */
  readonly isOptional: boolean
}

const field = (name: string, help: string, ...paths: readonly Path[]): FormField => ({
  name,
  help,
  paths,
  isOptional: false,
})
const optional = (name: string, help: string, ...paths: readonly Path[]): FormField => ({
  name,
  help,
  paths,
  isOptional: true,
})

export const GENERAL_FIELDS: readonly FormField[] = [
  field('Name', 'Lowercase letters, digits, dot, - and _', ['scenario']),
  optional('Seed', 'Seed for all random numbers; default 1', ['seed']),
  optional('Duration', 'Last arrival: 90m, 6h, 2d; default: the whole workload', ['clock', 'until']),
  optional('Overcommit, percent', '0 to 1000; default 0', ['config', 'default_vram_overcommit_percent']),
]

export const FLEET_FIELDS: readonly FormField[] = [
  field('Node names', '{i} is the node number', ['name']),
  optional('Number of nodes', 'Default 1', ['count']),
  optional('GPUs per node', '1 to 16; default 1', ['gpus']),
  optional('GPU model', 'Display name; optional', ['gpu', 'model']),
  field('VRAM per GPU', 'In MiB, or with a unit, for example 40Gi', ['gpu', 'vram_mib']),
]

const DURATIONS: readonly Path[] = [
  ['duration'],
  ['duration', 'exponential', 'mean'],
  ['duration', 'lognormal', 'median'],
]

export type WorkloadKind = 'generate' | 'task' | 'trace'

export const WORKLOAD_FIELDS: Readonly<Record<WorkloadKind, readonly FormField[]>> = {
  generate: [
    field('Arrivals', 'poisson: random', ['generate']),
    field('Arrival rate', 'Average arrivals per hour', ['rate_per_hour']),
    field('VRAM per GPU', 'In MiB, or with a unit, for example 16Gi', ['vram_mib']),
    field('Duration', 'Duration of each task, or its mean or median; for example 20m', ...DURATIONS),
    optional('Activity', 'always-busy (default), serving or training', ['activity']),
    optional('Priority', '0 (highest) to 4; default 2', ['priority']),
  ],
  task: [
    field('Task', 'ID and name', ['task', 'id']),
    optional('Submitted at', 'For example 10m; default 0', ['task', 'at']),
    field('VRAM per GPU', 'In MiB, or with a unit, for example 16Gi', ['task', 'vram_mib']),
    optional('GPUs', 'Default 1', ['task', 'gpus']),
    optional('Runtime', 'For example 30m; default 1h', ['task', 'run']),
    optional('Priority', '0 (highest) to 4; default 2', ['task', 'priority']),
  ],
  trace: [
    field('Trace', 'File path, relative to the scenario', ['trace']),
    optional('Time scale of arrivals', 'Factor; default 1', ['time_scale']),
    optional('Sample', 'Share of the tasks, above 0 and at most 1; default 1', ['sample']),
  ],
}

const ARRIVALS =
  '{ generate: poisson, rate_per_hour: 30, vram_mib: 16384, duration: { exponential: { mean: 20m } }, ' +
  'activity: serving }'

/** New entries, as YAML or as JSON. */
export const NEW_ENTRIES = {
  nodes: (isJson: boolean) =>
    entry('{ name: "node-{i}", count: 2, gpus: 4, gpu: { vram_mib: 40960 } }', isJson),
  arrivals: (isJson: boolean) => entry(ARRIVALS, isJson),
  task: (isJson: boolean) => entry('{ task: { id: task-1, at: 0, vram_mib: 16384, run: 30m } }', isJson),
} as const

function entry(yaml: string, isJson: boolean): string {
  if (!isJson) return yaml
  const quotedKeys = yaml.replaceAll(/([a-z_]+):/g, '"$1":')
  return quotedKeys.replaceAll(/: ([a-z][a-z0-9-]*|\d+m)(?=[ ,}])/g, ': "$1"')
}

/** A small, complete scenario to start with. */
export const FIRST_SCENARIO = `scenario: my-scenario
version: 1
seed: 1
clock: { until: 6h }
fleet:
  - { name: "node-{i}", count: 2, gpus: 4, gpu: { vram_mib: 40960 } }
config: { default_vram_overcommit_percent: 50 }
workload:
  - ${ARRIVALS}
`
