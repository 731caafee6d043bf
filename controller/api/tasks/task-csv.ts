/** All tasks that match a filter, as lines of a file: open ones first, then final ones, each newest first. */
import { isFinal } from '../../model/task.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import { csvHead, csvRow, type CsvColumns } from '../http/csv.ts'
import { presentTaskRecord, presentWithoutWait } from './present.ts'
import type { TaskBody } from './schema.ts'
import { firstFinal, matches, type TaskFilter } from './task-list.ts'
import type { TaskPosition } from './task-order.ts'

/** Open tasks that are visited before other work runs; few if each must be explained. */
const SLICE_TASKS = 500
const SLICE_EXPLAINED = 8
const STORE_PAGE = 200

const COLUMNS: CsvColumns<TaskBody> = {
  id: ({ id }) => id,
  name: ({ name }) => name,
  owner: ({ owner }) => owner,
  state: ({ state }) => state,
  residency: ({ residency }) => residency,
  priority: ({ priority }) => priority,
  gpu_count: (task) => task.gpu_count,
  gpu_mode: (task) => task.gpu_mode,
  vram_mib: (task) => task.vram_mib,
  noswap: ({ noswap }) => noswap,
  held: ({ held }) => held,
  groups: ({ groups }) => groups.join(' '),
  node: ({ placement }) => placement?.node_name ?? null,
  node_id: ({ placement, last_node_id: last }) => placement?.node_id ?? last,
  gpus: ({ placement }) => placement?.gpus.join(' ') ?? null,
  submitted_at: (task) => task.submitted_at,
  pending_since: (task) => task.pending_since,
  first_started_at: (task) => task.first_started_at,
  finished_at: (task) => task.finished_at,
  exit_code: (task) => task.exit_code,
  end_code: (task) => task.end_code,
  end_reason: (task) => task.end_reason,
  swap_outs: (task) => task.swap_outs,
  starved_seconds: (task) => task.starved_seconds,
}

export async function* csvOfTasks(views: Views, filter: TaskFilter): AsyncGenerator<string> {
  yield csvHead(COLUMNS)
  const lineOf = (task: TaskBody): string => csvRow(COLUMNS, task)
  const written = new Set<string>()
  for await (const task of openTasks(views, filter)) {
    written.add(task.spec.id)
    yield lineOf(presentWithoutWait(task, views))
  }
  if (filter.reason !== undefined || !filter.states.some(isFinal)) return
  for (let after: TaskPosition | null = null; ;) {
    const page = await firstFinal(views, filter, { sort: 'newest', after, limit: STORE_PAGE })
    const records = page.first.slice(0, STORE_PAGE)
    // A task that ended meanwhile is in the file already.
    for (const record of records) if (!written.has(record.id)) yield lineOf(presentTaskRecord(record))
    const last = records.at(-1)
    const end = page.first.length > STORE_PAGE && last !== undefined ? last : page.reach
    if (end === null) return
    after = { seq: end.seq, priority: end.priority, name: end.name, starved_seconds: 0 }
  }
}

/** Restarts after the last task of a slice, because tasks come and go in between. */
async function* openTasks(views: Views, filter: TaskFilter): AsyncGenerator<Task> {
  const slice = filter.reason === undefined ? SLICE_TASKS : SLICE_EXPLAINED
  for (let seq = Infinity, isOver = false; !isOver;) {
    const tasks: Task[] = []
    isOver = true
    for (const task of views.openTasksBefore(seq)) {
      seq = task.spec.seq
      if (matches(task, filter)) tasks.push(task)
      isOver = false
      if (tasks.length >= slice) break
    }
    for (const task of tasks) if (isWanted(views, task, filter)) yield task
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function isWanted(views: Views, task: Task, { reason }: TaskFilter): boolean {
  return reason === undefined || views.explain(task)?.primary.reason === reason
}
