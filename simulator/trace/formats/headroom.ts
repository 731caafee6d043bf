import { type SourceEvent, sourceEvents } from '../import/event-source.ts'
import {
  type ImportedTask,
  type Importer,
  type ImportLog,
  type ImportOptions,
  MAX_TASK_GPUS,
  ownerOf,
  plainTask,
} from '../import/importer.ts'
import { ObservedTask } from '../import/observed-task.ts'
import { dateTimeOf } from '../import/source-values.ts'

/**
 * The workload of a Headroom cluster, from its events (docs/events.md). One event per row; memory grows with
 * the open tasks.
 */
export const headroom: Importer = {
  format: 'headroom',
  licence: null,
  origin: 'events of a Headroom cluster',
  options: [],
  about:
    'The workload of your own cluster, from its events: `headroom events` with `--after 0 ' +
    '--last 1000000 -o jsonl`, pages of `GET /events` (one per line), a saved `GET ' +
    "/events/stream?after=0`, or a run's `journal.jsonl`. A row is an event. The log does not " +
    'say when a task used its GPU, only when it did not: from a swap-out until the task ' +
    'requested its return. With `--activity-model` the model decides instead.',
  columns: [
    {
      name: 'task_submitted',
      isRequired: true,
      becomes: '`id`, `at`, `gpus`, `vram_mib`, `gpu_mode`, `noswap`, `priority`; `by` is the `owner`',
    },
    { name: 'task_started', isRequired: true, becomes: 'the beginning of its work' },
    {
      name: 'task_residency, swap_in_decided',
      isRequired: false,
      becomes:
        'idle from swapping_out until it requested its return; the wait after that counts as ' +
        'neither work nor idle time',
    },
    { name: 'task_returned', isRequired: false, becomes: 'the attempt was lost: work restarts' },
    { name: 'task_finished', isRequired: true, becomes: 'the end of its work, whatever the state' },
  ],
  dropped: {
    of_no_task: 'an event of a node, a group or the configuration, or a line that is not an event',
    bad_at: 'its time cannot be parsed',
    began_before_the_log: 'an event of a task whose submission is not in the log: retention removed it',
    bad_submission: 'a submission without the request',
    duplicate_event: 'not newer than the event before it (a page read twice)',
  },
  ignored: {
    groups: 'not in the log: every task uses the common pool (counted once per task)',
  },
  adjusted: {
    never_started_left_out: 'tasks that were cancelled before they ran',
    still_open_left_out: 'tasks that had not ended at the end of the log',
    attempts_left_out: 'tasks of which only the last attempt counts',
    lost_taken_as_ended: 'tasks whose server was lost: they end there',
  },
  publicData: [],
  async *read(source, options, log) {
    const open = new Map<string, ObservedTask>()
    let lastSeq = 0
    for await (const event of sourceEvents(source)) {
      log.row()
      if (event === null || event.taskId === null) {
        log.drop('of_no_task')
        continue
      }
      const at = typeof event.at === 'number' ? event.at : dateTimeOf(event.at)
      if (at === null || !Number.isSafeInteger(at)) {
        log.drop('bad_at')
        continue
      }
      if (event.seq <= lastSeq) {
        log.drop('duplicate_event')
        continue
      }
      lastSeq = event.seq
      const task = take(open, event.taskId, at, event, options, log)
      if (task !== null) yield task
    }
    for (let i = 0; i < open.size; i++) log.adjust('still_open_left_out')
  },
}

/** The task that ends with this event. */
function take(
  open: Map<string, ObservedTask>,
  id: string,
  at: number,
  event: SourceEvent,
  options: ImportOptions,
  log: ImportLog,
): ImportedTask | null {
  if (event.kind === 'task_submitted') {
    const task = ObservedTask.submitted(at, event)
    if (task === null || task.gpus > MAX_TASK_GPUS) log.drop('bad_submission')
    else open.set(id, task)
    return null
  }
  const task = open.get(id)
  if (task === undefined) {
    log.drop('began_before_the_log')
    return null
  }
  task.take(at, event)
  if (event.kind !== 'task_finished') return null
  open.delete(id)
  return finished(id, at, task, event, options, log)
}

function finished(
  id: string,
  at: number,
  task: ObservedTask,
  event: SourceEvent,
  options: ImportOptions,
  log: ImportLog,
): ImportedTask | null {
  const work = task.end(at)
  if (work === null) {
    log.adjust('never_started_left_out')
    return null
  }
  if (task.failedAttempts > 0) log.adjust('attempts_left_out')
  if (event.data['state'] === 'lost') log.adjust('lost_taken_as_ended')
  log.ignore('groups')
  return plainTask(
    {
      id,
      at: task.submittedAt,
      gpus: task.gpus,
      vram_mib: task.vramMib,
      gpu_mode: task.gpuMode,
      priority: task.priority,
      noswap: task.noswap,
      owner: task.owner === null ? null : ownerOf(task.owner),
      work:
        options.activityModel === undefined
          ? { kind: 'phases', phases: work.phases }
          : { kind: 'residence', ms: work.ms },
    },
    options,
  )
}
