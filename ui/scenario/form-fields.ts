/** What the form shows of a scenario. All else stands in the text alone. Pure. */
import type { Path } from './scenario-text.ts'

export interface FormField {
  readonly name: string
  /** Where it may stand, the usual place first. */
  readonly paths: readonly Path[]
  readonly help: string
  /** The scenario may do without it. */
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
  field('Name', 'Small letters, digits, dot, - and _', ['scenario']),
  optional('Seed', 'Of all random numbers; 1 when left out', ['seed']),
  optional('Duration', 'No arrival after: 90m, 6h, 2d; to the end of the workload when left out', [
    'clock',
    'until',
  ]),
  optional('Overcommit, percent', '0 to 1000; 0 when left out', [
    'config',
    'default_vram_overcommit_percent',
  ]),
]

export const FLEET_FIELDS: readonly FormField[] = [
  field('Nodes named', '{i} is the number of the node', ['name']),
  optional('How many', '1 when left out', ['count']),
  optional('GPUs of each', '1 to 16; 1 when left out', ['gpus']),
  optional('GPU model', 'Shown to people; may be left out', ['gpu', 'model']),
  field('VRAM of a GPU', 'MiB, or as 40Gi', ['gpu', 'vram_mib']),
]

const DURATIONS: readonly Path[] = [
  ['duration'],
  ['duration', 'exponential', 'mean'],
  ['duration', 'lognormal', 'median'],
]

export type WorkloadKind = 'generate' | 'task' | 'trace'

export const WORKLOAD_FIELDS: Readonly<Record<WorkloadKind, readonly FormField[]>> = {
  generate: [
    field('Arrivals', 'poisson: at random', ['generate']),
    field('An hour', 'Arrivals per hour on average', ['rate_per_hour']),
    field('VRAM of a GPU', 'MiB, or as 16Gi', ['vram_mib']),
    field('Duration', 'Of each, or their mean or median: 20m', ...DURATIONS),
    optional('Activity', 'always-busy (when left out), serving, training', ['activity']),
    optional('Priority', '0 (first) to 4; 2 when left out', ['priority']),
  ],
  task: [
    field('Task', 'Its id and name', ['task', 'id']),
    optional('At', 'When it is submitted: 10m; 0 when left out', ['task', 'at']),
    field('VRAM of a GPU', 'MiB, or as 16Gi', ['task', 'vram_mib']),
    optional('GPUs', '1 when left out', ['task', 'gpus']),
    optional('Runs for', 'As 30m; 1h when left out', ['task', 'run']),
    optional('Priority', '0 (first) to 4; 2 when left out', ['task', 'priority']),
  ],
  trace: [
    field('Trace', 'File, from the folder of the scenario', ['trace']),
    optional('Time between arrivals', 'Times as long; 1 when left out', ['time_scale']),
    optional('Share taken', 'Above 0, at most 1; 1 when left out', ['sample']),
  ],
}

const ARRIVALS =
  '{ generate: poisson, rate_per_hour: 30, vram_mib: 16384, duration: { exponential: { mean: 20m } }, activity: serving }'

/** What is added, as YAML or as JSON. */
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

/** A scenario to begin with: complete, and small. */
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
