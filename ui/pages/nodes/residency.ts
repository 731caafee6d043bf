/**
 * Where the bytes of each task of a node were, and whether it used the GPU: bars from its events, from the
 * idleness that decisions found, and from the current state of its tasks. Pure.
 *
 * The use of GPUs is not recorded continuously. A resident task counts as idle where a decision found it
 * idle, and since its `idle_since` while it does not want the GPU; otherwise as active.
 */
import type { DecisionBody } from '../../../controller/api/observe/decision-schema.ts'
import type { EventBody } from '../../../controller/api/observe/event-schema.ts'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import type { BarKind, GanttBar } from '../../charts/gantt-layout.ts'

export const RESIDENCY_EVENTS = 'task_placed,task_started,task_returned,task_finished,task_residency'

export interface ResidencyBar extends GanttBar {
  readonly taskId: string
  readonly taskName: string
  /** Number of the decision that caused it; null: not retained. */
  readonly decision: number | null
}

export interface ResidencyFacts {
  /** Events of the node, oldest first. */
  readonly events: readonly EventBody[]
  readonly decisions: readonly DecisionBody[]
  /** Tasks that are placed there now. */
  readonly tasks: readonly TaskBody[]
  /** The latest tasks that ended there. */
  readonly finished: readonly TaskBody[]
  readonly gpuIndexes: readonly number[]
  readonly from: number
  readonly to: number
}

interface Span {
  readonly from: number
  readonly to: number
  readonly kind: BarKind
  readonly decision: number | null
}

interface Idle {
  readonly from: number
  readonly to: number
}

export function residencyBars(facts: ResidencyFacts): readonly ResidencyBar[] {
  const { events, decisions, tasks, gpuIndexes } = facts
  const placements = new Map(
    decisions.filter(({ kind }) => kind === 'placement').map((decision) => [decision.task_id, decision]),
  )
  const open = new Map(tasks.map((task) => [task.id, task]))
  const byTask = Map.groupBy(
    events.filter((event) => event.task_id !== null),
    (event) => event.task_id as string,
  )
  const ended = new Map(facts.finished.map((task) => [task.id, task]))
  const ids = new Set([...open.keys(), ...byTask.keys()])
  const idles = idlesOf(decisions, tasks, facts.to)
  return [...ids].flatMap((id) => {
    const task = open.get(id)
    const own = byTask.get(id) ?? []
    const gpus = gpusOf(own) ?? task?.placement?.gpus ?? placements.get(id)?.gpus ?? []
    const name = (task ?? ended.get(id))?.name ?? placements.get(id)?.task_name ?? id
    const spans = spansOf(own, task, ended.get(id), facts).flatMap((span) =>
      cutByIdle(span, idles.get(id) ?? []),
    )
    return gpus.flatMap((gpu) => {
      const row = gpuIndexes.indexOf(gpu)
      return row === -1
        ? []
        : spans.map((span) => ({ ...span, row, laneKey: id, taskId: id, taskName: name }))
    })
  })
}

function gpusOf(events: readonly EventBody[]): readonly number[] | null {
  const gpus = events.findLast(({ kind }) => kind === 'task_placed')?.data['gpus']
  return Array.isArray(gpus) ? (gpus as number[]) : null
}

/** The residency before an event, as far as the event implies it. */
const BEFORE: Readonly<Record<string, BarKind>> = {
  swapping_out: 'active',
  swapped_out: 'moving',
  swapping_in: 'out',
  resident: 'moving',
}
const KINDS: Readonly<Record<string, BarKind>> = {
  resident: 'active',
  swapping_out: 'moving',
  swapped_out: 'out',
  swapping_in: 'moving',
}

function spansOf(
  events: readonly EventBody[],
  task: TaskBody | undefined,
  ended: TaskBody | undefined,
  { from, to }: ResidencyFacts,
): readonly Span[] {
  const spans: Span[] = []
  let since = from
  let kind = kindBefore(events[0], task, ended)
  let decision: number | null = null
  for (const event of events) {
    const at = Math.max(from, Date.parse(event.at))
    if (kind !== null && at > since) spans.push({ from: since, to: at, kind, decision })
    since = at
    kind = kindAfter(event)
    decision = decisionBehind(event, decision)
  }
  if (kind !== null && task !== undefined && to > since) spans.push({ from: since, to, kind, decision })
  return spans
}

/** null: not placed. */
function kindBefore(
  first: EventBody | undefined,
  task: TaskBody | undefined,
  ended: TaskBody | undefined,
): BarKind | null {
  if (first === undefined) return task === undefined ? null : (KINDS[task.residency] ?? 'moving')
  if (first.kind === 'task_placed') return null
  if (first.kind === 'task_started') return 'moving'
  // A task that was never swapped out was in VRAM until it ended.
  if (first.kind === 'task_finished' && ended?.swap_outs === 0 && ended.first_started_at !== null)
    return 'active'
  return first.kind === 'task_residency' ? (BEFORE[String(first.data['residency'])] ?? 'unknown') : 'unknown'
}

function kindAfter(event: EventBody): BarKind | null {
  switch (event.kind) {
    case 'task_placed':
      return 'moving'
    case 'task_started':
      return 'active'
    case 'task_residency':
      return KINDS[String(event.data['residency'])] ?? 'unknown'
    default:
      return null
  }
}

/**
 * A placement has its own decision; a residency change belongs to the decision that is named as its cause.
 */
function decisionBehind(event: EventBody, before: number | null): number | null {
  if (event.decision !== null) return event.decision
  const isMove = event.kind === 'task_residency' && String(event.data['residency']).startsWith('swapping')
  return isMove ? event.caused_by : before
}

function idlesOf(
  decisions: readonly DecisionBody[],
  tasks: readonly TaskBody[],
  to: number,
): ReadonlyMap<string, readonly Idle[]> {
  const seen = decisions.flatMap(({ at, candidates }) =>
    candidates.map(
      (candidate) => [candidate.task_id, idleBefore(Date.parse(at), candidate.idle_seconds)] as const,
    ),
  )
  const now = tasks.flatMap(({ id, placement }) =>
    placement === null || placement.wants_gpu || placement.started_at === null
      ? []
      : [[id, { from: Date.parse(placement.idle_since), to }] as const],
  )
  const byTask = Map.groupBy([...seen, ...now], ([id]) => id)
  return new Map([...byTask].map(([id, entries]) => [id, merged(entries.map(([, idle]) => idle))]))
}

function idleBefore(at: number, idleSeconds: number): Idle {
  return { from: at - idleSeconds * 1000, to: at }
}

function merged(idles: readonly Idle[]): readonly Idle[] {
  const inOrder = [...idles].sort((a, b) => a.from - b.from || a.to - b.to)
  const out: Idle[] = []
  for (const idle of inOrder) {
    const last = out.at(-1)
    if (last !== undefined && idle.from <= last.to)
      out[out.length - 1] = { from: last.from, to: Math.max(last.to, idle.to) }
    else out.push(idle)
  }
  return out
}

function cutByIdle(span: Span, idles: readonly Idle[]): readonly Span[] {
  if (span.kind !== 'active') return [span]
  const parts: Span[] = []
  let since = span.from
  for (const { from, to } of idles) {
    const start = Math.max(from, span.from)
    const end = Math.min(to, span.to)
    if (end <= start) continue
    if (start > since) parts.push({ ...span, from: since, to: start })
    parts.push({ ...span, from: start, to: end, kind: 'idle' })
    since = end
  }
  return since < span.to ? [...parts, { ...span, from: since }] : parts
}
