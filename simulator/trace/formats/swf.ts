import { wholeOf } from '../import/csv-cells.ts'
import {
  type ImportedTask,
  type Importer,
  type ImportOptions,
  MAX_TASK_GPUS,
  plainTask,
  priorityOf,
} from '../import/importer.ts'
import { textLines } from '../line-blocks.ts'
import { RESIDENCE_REASONS, residenceOf } from '../import/residence.ts'
import { numberOf, unitsToMs } from '../import/source-values.ts'

/** The columns of the standard, 18 in all. */
// prettier-ignore
const FIELD = {
  job: 0, submit: 1, run: 3, allocated: 4, memory: 6, requested: 7, memoryRequested: 9, status: 10, user: 11,
  queue: 14, partition: 15, preceding: 16,
}
const FIELD_COUNT = 18
/** Lines that repeat parts of a job: completed, to be continued; last part; and so on. */
const PARTIAL_STATUS: ReadonlySet<string> = new Set(['2', '3', '4'])
const MAX_PROCESSORS = 10_000_000

/**
 * The Standard Workload Format, version 2.2: one job per line, 18 numbers, -1 for unknown values, comments
 * after `;`. Times in seconds. Source: Feitelson, https://www.cs.huji.ac.il/labs/parallel/workload/swf.html
 */
export const swf: Importer = {
  format: 'swf',
  licence: null,
  origin: null,
  options: ['processorsPerGpu'],
  about:
    'The Standard Workload Format 2.2 of the Parallel Workloads Archive: one job per line, 18 ' +
    'numbers, times in seconds, −1 for unknown values. It contains processors, not GPUs: ' +
    '`--procs-per-gpu` processors count as one GPU (1).',
  columns: [
    { name: 'job (1)', isRequired: true, becomes: '`id`' },
    { name: 'submit (2)', isRequired: true, becomes: '`at`' },
    { name: 'run (4)', isRequired: true, becomes: 'the residence' },
    {
      name: 'allocated (5)',
      isRequired: true,
      becomes: '`gpus` = processors ÷ `--procs-per-gpu`, rounded up; requested (8) if it is −1',
    },
    {
      name: 'status (11)',
      isRequired: true,
      becomes: '2 to 4 are parts of a job that has its own line',
    },
    { name: 'user (12)', isRequired: true, becomes: '`owner` `user-N`' },
    {
      name: 'queue (15), partition (16)',
      isRequired: true,
      becomes: '`priority` by `--priority-map` (`queue-N` or `partition-N`); else P2',
    },
    { name: 'all others', isRequired: true, becomes: 'nothing' },
  ],
  dropped: {
    ...RESIDENCE_REASONS,
    wrong_number_of_fields: 'it does not have 18 fields',
    no_job: 'its number is −1',
    bad_job: 'its number is not a number',
    no_submit: 'its submission is −1',
    bad_submit: 'its submission is not a number',
    no_run: 'its run time is −1',
    bad_run: 'its run time is not a number',
    no_processors: 'it has no processors, or they are −1',
    bad_processors: 'its processors are not a number, or more than 1024 GPUs',
    part_of_a_job: 'its status is 2, 3 or 4',
  },
  ignored: {
    host_memory: 'it requested or used memory',
    preceding_job: 'it was submitted after another job had ended',
  },
  adjusted: {},
  publicData: [
    {
      name: 'Parallel Workloads Archive',
      licence: 'free to use with acknowledgement; see each log',
      where: 'www.cs.huji.ac.il/labs/parallel/workload',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const { text } of textLines(source)) {
      if (text.startsWith(';') || text.startsWith('\u{feff};')) continue
      log.row()
      const job = readJob(text.split(/\s+/), options.processorsPerGpu ?? 1, options)
      if (typeof job === 'string') {
        log.drop(job)
        continue
      }
      const ms = residenceOf(job.runMs, log)
      if (ms === null) continue
      if (job.hasMemory) log.ignore('host_memory')
      if (job.hasPreceding) log.ignore('preceding_job')
      yield plainTask({ ...job.task, work: { kind: 'residence', ms } }, options)
    }
  },
}

interface Job {
  readonly task: Pick<ImportedTask, 'id' | 'at' | 'gpus' | 'owner' | 'priority'>
  readonly runMs: number
  readonly hasMemory: boolean
  readonly hasPreceding: boolean
}

/** The job, or the reason for dropping it. */
function readJob(fields: readonly string[], processorsPerGpu: number, options: ImportOptions): Job | string {
  if (fields.length !== FIELD_COUNT) return 'wrong_number_of_fields'
  const field = (name: keyof typeof FIELD): string => fields[FIELD[name]]!
  if (PARTIAL_STATUS.has(field('status'))) return 'part_of_a_job'
  const id = field('job')
  if (id === '-1') return 'no_job'
  if (wholeOf(id, 0, Number.MAX_SAFE_INTEGER) === null) return 'bad_job'
  const at = msOf(field('submit'), 'submit')
  if (typeof at === 'string') return at
  const runMs = msOf(field('run'), 'run')
  if (typeof runMs === 'string') return runMs
  const allocated = field('allocated')
  const processors = wholeOf(allocated === '-1' ? field('requested') : allocated, -1, MAX_PROCESSORS)
  if (processors !== null && processors <= 0) return 'no_processors'
  const gpus = Math.ceil((processors ?? Infinity) / processorsPerGpu)
  if (gpus > MAX_TASK_GPUS) return 'bad_processors'
  const [user, queue, partition] = [field('user'), field('queue'), field('partition')]
  return {
    task: {
      id,
      at,
      gpus,
      owner: user === '-1' ? null : `user-${user}`,
      priority: priorityOf([`queue-${queue}`, `partition-${partition}`], options),
    },
    runMs,
    hasMemory: Number(field('memory')) > 0 || Number(field('memoryRequested')) > 0,
    hasPreceding: Number(field('preceding')) > 0,
  }
}

function msOf(text: string, name: 'submit' | 'run'): number | string {
  const seconds = numberOf(text)
  if (seconds === -1) return `no_${name}`
  const ms = seconds === null ? null : unitsToMs(seconds, 1)
  return ms === null || ms < 0 ? `bad_${name}` : ms
}
