import type { DurationMs } from '../../../protocol/units.ts'
import { type Importer, MAX_TASK_GPUS, ownerOf, plainTask, priorityOf } from '../import/importer.ts'
import { jsonElements } from '../import/json-elements.ts'
import { RESIDENCE_REASONS, residenceOf } from '../import/residence.ts'
import { dateTimeOf, isNothing } from '../import/source-values.ts'

/**
 * Microsoft's Philly cluster of 2017 (msr-fiddle/philly-traces, cluster_job_log): one JSON array of jobs with
 * their attempts. Local times of the US Pacific zone; an attempt over the end of daylight saving time (5
 * November 2017) is an hour too short.
 */
export const philly: Importer = {
  format: 'philly',
  licence: 'CC-BY-4.0',
  origin: 'Microsoft Philly (philly-traces)',
  options: [],
  about:
    'The job log of the Philly cluster of 2017: one JSON array with one element per job, local ' +
    'times. It is streamed: one element at a time is in memory.',
  columns: [
    { name: 'jobid', isRequired: true, becomes: '`id`' },
    { name: 'submitted_time', isRequired: true, becomes: '`at`' },
    {
      name: 'attempts',
      isRequired: true,
      becomes:
        'the residence: the sum over attempts with a start and a later end. `gpus`: the maximum ' +
        'of these attempts, over all machines (detail[].gpus)',
    },
    { name: 'user', isRequired: false, becomes: '`owner`' },
    { name: 'vc', isRequired: false, becomes: '`priority` by `--priority-map`; else P2' },
    {
      name: 'status',
      isRequired: false,
      becomes: 'not used: failed and killed jobs used their GPUs too',
    },
  ],
  dropped: {
    ...RESIDENCE_REASONS,
    not_json: 'the element is not JSON (NaN is not)',
    not_an_object: 'the element is not an object',
    no_attempts: 'it has no attempts: it never ran',
    no_attempt_with_times: 'none of its attempts has a start and a later end',
    no_gpu: 'its attempts list no GPU',
    bad_gpus: 'it has more than 1024 GPUs',
  },
  ignored: { several_nodes: 'an attempt was spread over machines', vc: 'it was bound to a virtual cluster' },
  adjusted: {
    attempts_joined: 'several attempts count as one run',
    attempts_left_out: 'attempts without a start or an end, or with an end before the start, do not count',
  },
  publicData: [
    {
      name: 'Philly, 117,325 jobs',
      licence: 'CC-BY-4.0',
      where: 'github.com/msr-fiddle/philly-traces, cluster_job_log',
    },
  ],
  async *read(source, options, log) {
    log.synthesise('vram_mib')
    for await (const { text } of jsonElements(source)) {
      log.row()
      const job = readJob(text)
      if (typeof job === 'string') {
        log.drop(job)
        continue
      }
      const ms = residenceOf(job.attempts.ms, log)
      if (ms === null) continue
      const { id, at, attempts, vc, user } = job
      if (attempts.areSpread) log.ignore('several_nodes')
      if (vc !== '') log.ignore('vc')
      if (attempts.used > 1) log.adjust('attempts_joined')
      if (attempts.unused > 0) log.adjust('attempts_left_out')
      const priority = priorityOf([vc], options)
      yield plainTask(
        { id, at, gpus: attempts.gpus, priority, owner: ownerOf(user), work: { kind: 'residence', ms } },
        options,
      )
    }
  },
}

interface Job {
  readonly id: string
  readonly at: number
  readonly vc: string
  readonly user: string
  readonly attempts: Attempts
}

type Json = Readonly<Record<string, unknown>>

/** The job, or the reason for dropping it. */
function readJob(text: string): Job | string {
  const job = parsed(text)
  if (job === undefined) return 'not_json'
  if (!isObject(job)) return 'not_an_object'
  const id = textOf(job['jobid'])
  if (id === '') return 'no_jobid'
  const submitted = textOf(job['submitted_time'])
  const at = dateTimeOf(submitted)
  if (at === null) return submitted === '' ? 'no_submitted_time' : 'bad_submitted_time'
  const attempts = job['attempts']
  if (!Array.isArray(attempts) || attempts.length === 0) return 'no_attempts'
  const summed = attemptsOf(attempts)
  if (summed.used === 0) return 'no_attempt_with_times'
  if (summed.gpus === 0) return 'no_gpu'
  if (summed.gpus > MAX_TASK_GPUS) return 'bad_gpus'
  return { id, at, vc: textOf(job['vc']), user: textOf(job['user']), attempts: summed }
}

interface Attempts {
  readonly ms: DurationMs
  readonly gpus: number
  readonly used: number
  readonly unused: number
  readonly areSpread: boolean
}

function attemptsOf(attempts: readonly unknown[]): Attempts {
  let [ms, gpus, used, areSpread] = [0, 0, 0, false]
  for (const attempt of attempts) {
    if (!isObject(attempt)) continue
    const startMs = dateTimeOf(textOf(attempt['start_time']))
    const endMs = dateTimeOf(textOf(attempt['end_time']))
    if (startMs === null || endMs === null || endMs < startMs) continue
    const machines = Array.isArray(attempt['detail']) ? attempt['detail'].filter(isObject) : []
    used += 1
    ms += endMs - startMs
    gpus = Math.max(
      gpus,
      machines.reduce((sum, { gpus: of }) => sum + (Array.isArray(of) ? of.length : 0), 0),
    )
    areSpread ||= machines.length > 1
  }
  return { ms, gpus, used, unused: attempts.length - used, areSpread }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Empty for everything that is not text, and for words that mean "no value". */
function textOf(value: unknown): string {
  return typeof value === 'string' && !isNothing(value) ? value : ''
}
