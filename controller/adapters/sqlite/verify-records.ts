/**
 * Consistency of the rows of a store, for any schema version: columns match their records, and references
 * resolve.
 */
import type Database from 'better-sqlite3'
import { checkConfig, checkConfigChange, type ConfigFields } from '../../model/config.ts'
import { isFinal } from '../../model/task.ts'
import { type TaskState } from '../../../protocol/units.ts'

/** Maximum number of reported problems of one kind. */
export const MAX_TOLD = 20

const STATES: readonly TaskState[] = [
  'pending',
  'assigned',
  'running',
  'unreachable',
  'completed',
  'failed',
  'cancelled',
  'lost',
]

export function recordProblems(db: Database.Database): readonly string[] {
  return [
    markProblems,
    taskProblems,
    placementProblems,
    nodeProblems,
    groupProblems,
    configProblems,
    eventProblems,
  ].flatMap((check) => {
    const problems = check(db)
    if (problems.length <= MAX_TOLD) return problems
    return [...problems.slice(0, MAX_TOLD), `… and ${problems.length - MAX_TOLD} more of this kind`]
  })
}

/** Numbers that are assigned once must all be below the marks. */
function markProblems(db: Database.Database): readonly string[] {
  const marks = db
    .prepare<[], { next_task_seq: number; next_event_seq: number }>(
      'select next_task_seq, next_event_seq from marks',
    )
    .get()
  const last = db.prepare<[], { task: number | null; event: number | null }>(
    'select (select max(seq) from tasks) as task, (select max(seq) from events) as event',
  )
  const { task = null, event = null } = last.get() ?? {}
  if (marks === undefined)
    return task === null && event === null
      ? []
      : ['marks: missing, although the store contains tasks or events']
  const problems: string[] = []
  if ((task ?? 0) >= marks.next_task_seq)
    problems.push(`marks: the next task is ${marks.next_task_seq}, but task ${task} exists`)
  if ((event ?? 0) >= marks.next_event_seq)
    problems.push(`marks: the next event is ${marks.next_event_seq}, but event ${event} exists`)
  return problems
}

/** Runs in SQL, because there may be millions of tasks. */
function taskProblems(db: Database.Database): readonly string[] {
  const finals = STATES.filter(isFinal).map((state) => `'${state}'`)
  const known = STATES.map((state) => `'${state}'`)
  const rows = db.prepare<[], { id: string; what: string }>(`
    select id, case
      when not json_valid(record) then 'its record is no JSON'
      when json_extract(record, '$.id') is not id or json_extract(record, '$.seq') is not seq
        then 'its record is of another task'
      when json_extract(record, '$.state') is not state or state not in (${known.join()})
        then 'its state is not that of its record'
      when (state in (${finals.join()})) is not is_final
        then 'it counts as final and is not, or the other way round'
      when json_extract(record, '$.owner') is not owner then 'its owner is not that of its record'
      when json_extract(record, iif(is_final, '$.lastNodeId', '$.placement.nodeId')) is not node_id
        then 'its node is not that of its record'
      when not is_final and (state = 'pending') is not (node_id is null)
        then 'a task has a node exactly while it is placed'
    end as what
    from tasks where what is not null limit ${MAX_TOLD + 1}`)
  return rows.all().map(({ id, what }) => `task ${id}: ${what}`)
}

interface Placed {
  readonly id: string
  readonly node_id: string
  readonly gpus: string | null
  readonly node: string | null
}

function placementProblems(db: Database.Database): readonly string[] {
  const rows = db.prepare<[], Placed>(`
    select tasks.id, tasks.node_id, json_extract(tasks.record, '$.placement.gpus') as gpus,
      nodes.record as node
    from tasks left join nodes on nodes.id = tasks.node_id
    where is_final = 0 and tasks.node_id is not null and json_valid(tasks.record)`)
  const problems: string[] = []
  for (const { id, node_id, gpus, node } of rows.iterate()) {
    const gpuCount = gpuCountOf(node)
    const taken = JSON.parse(gpus ?? '[]') as readonly number[]
    if (node === null) problems.push(`task ${id}: it is placed on node ${node_id}, which does not exist`)
    else if (taken.length === 0 || taken.some((index) => index >= gpuCount)) {
      problems.push(
        `task ${id}: it is placed on GPUs [${taken.join()}] of node ${node_id}, which has ${gpuCount}`,
      )
    }
  }
  return problems
}

/** A GPU's index is its position among them. */
function gpuCountOf(node: string | null): number {
  const gpus = (parsed(node) as { readonly gpus?: unknown } | null)?.gpus
  return Array.isArray(gpus) ? gpus.length : 0
}

function nodeProblems(db: Database.Database): readonly string[] {
  const rows = db
    .prepare<[], { id: string; ordinal: number; record: string }>(
      'select id, ordinal, record from nodes order by ordinal',
    )
    .all()
  return rows.flatMap(({ id, ordinal, record }, i) => {
    const node = parsed(record) as { readonly id?: unknown; readonly ordinal?: unknown } | null
    if (node?.id !== id || node.ordinal !== ordinal) return [`node ${id}: its record is of another node`]
    return rows[i - 1]?.ordinal === ordinal ? [`node ${id}: it has the place ${ordinal} of another node`] : []
  })
}

function groupProblems(db: Database.Database): readonly string[] {
  const rows = db.prepare<[], { id: string; record: string }>('select id, record from groups').all()
  return rows.flatMap(({ id, record }) => {
    const group = parsed(record) as { readonly id?: unknown; readonly nodeIds?: unknown } | null
    return group?.id === id && Array.isArray(group.nodeIds)
      ? []
      : [`group ${id}: its record is of another group`]
  })
}

/** The live one is the newest; an older program may have known fewer fields. */
function configProblems(db: Database.Database): readonly string[] {
  const newest = db
    .prepare<[], { revision: number; fields: string }>(
      'select revision, fields from config_revisions order by revision desc',
    )
    .get()
  if (newest === undefined) return []
  const fields = parsed(newest.fields) as Readonly<Record<string, unknown>> | null
  if (fields === null) return [`configuration ${newest.revision}: it is not JSON`]
  const problems = checkConfigChange(fields)
  const all = problems.length > 0 ? problems : checkConfig(fields as unknown as ConfigFields)
  return all.map(({ field, detail }) => `configuration ${newest.revision}: ${field} ${detail}`)
}

/** Only the oldest are ever removed. */
function eventProblems(db: Database.Database): readonly string[] {
  const sums = db.prepare<[], { count: number; first: number | null; last: number | null }>(
    'select count(*) as count, min(seq) as first, max(seq) as last from events',
  )
  const { count = 0, first = null, last = null } = sums.get() ?? {}
  const missing = first === null || last === null ? 0 : last - first + 1 - count
  return missing === 0 ? [] : [`events: ${missing} of ${first} to ${last} are missing`]
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? 'null')
  } catch {
    return null
  }
}
