/**
 * Tasks from two sources that are one list to the reader: open ones in memory, final ones in the store. A
 * page begins after a position in its order, so tasks that arrive or end meanwhile shift nothing.
 */
import { isFinal, isFoundBy, listOf } from '../../model/task.ts'
import { TASK_STATES, type TaskState } from '../../../protocol/units.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import type { FinishedQuery, TaskRecord } from '../../ports/store.ts'
import { presentWithinBytes, withinBytes } from '../http/page-bytes.ts'
import { presentTask, presentTaskRecord } from './present.ts'
import { type TaskBody, type TaskQuery } from './schema.ts'
import { positionOf, TASK_ORDERS, type TaskPosition, type TaskSort } from './task-order.ts'

export interface TaskFilter extends Pick<
  TaskQuery,
  'priority' | 'node' | 'group' | 'owner' | 'without_owner' | 'q' | 'label' | 'reason'
> {
  readonly states: readonly TaskState[]
}

/** The page: a number of tasks after a position of the order; null means from its beginning. */
export interface PageRequest {
  readonly sort: TaskSort
  readonly after: TaskPosition | null
  readonly limit: number
}

export interface TaskPage {
  readonly items: readonly TaskBody[]
  /** Where the next page begins; null on the last. */
  readonly next: TaskPosition | null
  /** null when final tasks are filtered by something the store does not count. */
  readonly total: number | null
}

/**
 * A filter on final tasks that the store does not know is applied to at most this many of its pages, then the
 * page ends early.
 */
const STORE_PAGES = 10
const STORE_PAGE_SIZE = 200
/** Number of open tasks that are visited before other work runs. */
const SLICE_TASKS = 20_000
/**
 * Tasks are explained for so long before others get their turn, and for so long in all: an explanation may
 * take 2 ms.
 */
const EXPLAINING_SLICE_MS = 10
const EXPLAINING_MS = 250
/** Tasks that are explained for a page at most. */
export const EXPLAINED_TASKS = 1_000
/**
 * Among more open tasks those that match a filter are not counted: a page is found without looking at all of
 * them.
 */
const COUNTED_TASKS = 20_000
const OPEN_STATES: readonly TaskState[] = TASK_STATES.filter((state) => !isFinal(state))

/** Which exact states a `state` parameter means: a list of the specification, an exact state, or all. */
export function statesOf(state: TaskQuery['state']): readonly TaskState[] {
  if (state === undefined || state === 'all') return TASK_STATES
  if (state === 'succeeded') return ['completed']
  if (state === 'failed') return ['failed', 'lost']
  if (state === 'running' || state === 'pending' || state === 'completed')
    return TASK_STATES.filter((one) => listOf(one) === state)
  return [state]
}

/** @param elapsedMs a clock that measures how long explaining takes. */
export async function listTasks(
  views: Views,
  filter: TaskFilter,
  page: PageRequest,
  elapsedMs: () => number = () => performance.now(),
): Promise<TaskPage> {
  const order = TASK_ORDERS[page.sort]
  const open =
    filter.reason === undefined
      ? await firstOpen(views, filter, page)
      : await firstWaiting(views, filter, page, elapsedMs)
  // Tasks that ended in the meantime are read from the store.
  const shownOpen = presentWithinBytes(
    open.first.filter((task) => matches(task, filter)),
    (task) => presentTask(task, views),
  )
  // A final task does not wait.
  const final =
    filter.reason === undefined ? await firstFinal(views, filter, page) : { first: [], reach: null }
  const reach = open.reach ?? final.reach
  const shown = merged(shownOpen, final.first.map(presentTaskRecord), order)
  const reached = reach === null ? shown : shown.filter((task) => order(task, reach) <= 0)
  const items = withinBytes(reached.slice(0, page.limit))
  const hasMore = reached.length > items.length
  return {
    items,
    next: hasMore ? (items.at(-1) ?? null) : reach,
    total: filter.reason === undefined ? totalOf(views, filter, open.total) : open.total,
  }
}

// ── open tasks ────────────────────────────────────────────────────────────────

interface OpenTasks {
  /** In order, one more than the page holds at most. */
  readonly first: readonly Task[]
  /** How many match, on all pages; null when too many would have to be looked at. */
  readonly total: number | null
  /** The order was looked through up to here; null: to its end. */
  readonly reach: TaskPosition | null
}

async function firstOpen(
  views: Views,
  filter: TaskFilter,
  { sort, after, limit }: PageRequest,
): Promise<OpenTasks> {
  const states = filter.states.filter((state) => !isFinal(state))
  if (states.length === 0) return { first: [], total: 0, reach: null }
  const first = new FirstOf(sort, limit + 1)
  const order = TASK_ORDERS[sort]
  const known = isFiltered(filter) ? null : countOfStates(views, states)
  const isInOrder = sort === 'newest' && states.includes('pending')
  const endsEarly = isInOrder && (known !== null || countOfStates(views, OPEN_STATES) > COUNTED_TASKS)
  let total = 0
  let looked = 0
  for (const task of candidates(views, states, isInOrder, endsEarly ? (after?.seq ?? Infinity) : Infinity)) {
    looked += 1
    if (looked % SLICE_TASKS === 0) await others()
    if (!matches(task, filter)) continue
    total += 1
    const at = positionOf(task, sort, views)
    if (after === null || order(at, after) > 0) first.add({ task, at })
    if (endsEarly && first.count > limit) break
  }
  return {
    first: first.inOrder().map(({ task }) => task),
    total: known ?? (endsEarly ? null : total),
    reach: null,
  }
}

/**
 * Those whose first reason to wait is this one. To say why a task waits is a look at the cluster, so a
 * bounded number is explained, in the order of the list and from the cursor on; the page ends where that
 * ended. They are counted where no more match the other filters.
 */
async function firstWaiting(
  views: Views,
  filter: TaskFilter,
  { sort, after, limit }: PageRequest,
  elapsedMs: () => number,
): Promise<OpenTasks> {
  const ahead = new FirstOf(sort, EXPLAINED_TASKS)
  const behind: Task[] = []
  const order = TASK_ORDERS[sort]
  let [looked, matching, following] = [0, 0, 0]
  for (const task of views.openTasks()) {
    looked += 1
    if (looked % SLICE_TASKS === 0) await others()
    if (!matches(task, filter)) continue
    matching += 1
    const at = positionOf(task, sort, views)
    if (after !== null && order(at, after) <= 0) {
      if (behind.length < EXPLAINED_TASKS) behind.push(task)
      continue
    }
    following += 1
    ahead.add({ task, at })
  }
  const isCounted = matching <= EXPLAINED_TASKS
  const explaining = new Explaining(views, filter.reason, elapsedMs)
  const first: Task[] = []
  let reach: TaskPosition | null = null
  for (const { task, at } of ahead.inOrder()) {
    if (first.length > limit && !isCounted) return { first, total: null, reach }
    const isWanted = await explaining.isWanted(task)
    if (isWanted === null) return { first, total: null, reach }
    if (isWanted) first.push(task)
    reach = at
  }
  if (!isCounted) return { first, total: null, reach: following > EXPLAINED_TASKS ? reach : null }
  return { first, total: await explaining.countOf(first.length, behind), reach: null }
}

/** Explains tasks, within a time, with turns for others in between. */
class Explaining {
  readonly #views: Views
  readonly #reason: TaskFilter['reason']
  readonly #elapsedMs: () => number
  readonly #endsAt: number
  #sliceEnds: number

  constructor(views: Views, reason: TaskFilter['reason'], elapsedMs: () => number) {
    this.#views = views
    this.#reason = reason
    this.#elapsedMs = elapsedMs
    this.#endsAt = elapsedMs() + EXPLAINING_MS
    this.#sliceEnds = elapsedMs() + EXPLAINING_SLICE_MS
  }

  /** Returns whether it waits for the reason; null: the time is over. */
  async isWanted(task: Task): Promise<boolean | null> {
    const now = this.#elapsedMs()
    if (now > this.#endsAt) return null
    if (now > this.#sliceEnds) {
      await others()
      this.#sliceEnds = this.#elapsedMs() + EXPLAINING_SLICE_MS
    }
    return this.#views.explain(task)?.primary.reason === this.#reason
  }

  /** Returns how many further tasks match; null: the time limit was reached. */
  async countOf(known: number, tasks: readonly Task[]): Promise<number | null> {
    let count = known
    for (const task of tasks) {
      const isWanted = await this.isWanted(task)
      if (isWanted === null) return null
      if (isWanted) count += 1
    }
    return count
  }
}

/**
 * Returns the tasks from which the page is chosen: only placed tasks, or all, newest first if the page has
 * this order.
 */
function candidates(
  views: Views,
  states: readonly TaskState[],
  isInOrder: boolean,
  beforeSeq: number,
): Iterable<Task> {
  if (!states.includes('pending')) return views.placedTasks()
  return isInOrder ? views.openTasksBefore(beforeSeq) : views.openTasks()
}

function others(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

interface Placed {
  readonly task: Task
  readonly at: TaskPosition
}

/** The first n of an order, of any number that is offered; a few n are held at a time. */
class FirstOf {
  readonly #order: (a: TaskPosition, b: TaskPosition) => number
  readonly #count: number
  #held: Placed[] = []
  /** Tasks after this one are not on the page. */
  #last: Placed | null = null

  constructor(sort: TaskSort, count: number) {
    this.#order = TASK_ORDERS[sort]
    this.#count = count
  }

  /** Number of kept tasks. */
  get count(): number {
    return this.#held.length
  }

  add(placed: Placed): void {
    if (this.#last !== null && this.#order(placed.at, this.#last.at) > 0) return
    this.#held.push(placed)
    if (this.#held.length < 8 * this.#count) return
    this.#held = this.inOrder()
    this.#last = this.#held.at(-1) ?? null
  }

  inOrder(): Placed[] {
    return this.#held.toSorted((a, b) => this.#order(a.at, b.at)).slice(0, this.#count)
  }
}

export function matches(
  { state, spec, placement }: Task,
  { states, priority, node, group, owner, without_owner: isUnowned, q, label }: TaskFilter,
): boolean {
  return (
    states.includes(state) &&
    (priority === undefined || spec.priority === priority) &&
    (node === undefined || placement?.node.id === node) &&
    (group === undefined || spec.groups.includes(group)) &&
    (owner === undefined || spec.owner === owner) &&
    (isUnowned !== true || spec.owner === null) &&
    (q === undefined || isFoundBy(q, spec)) &&
    (label === undefined || hasLabel(spec.labels, label))
  )
}

/** `team=vision`: that value; `team`: any. A name may hold no equals sign to be found with a value. */
function hasLabel(labels: Readonly<Record<string, string>>, wanted: string): boolean {
  const at = wanted.indexOf('=')
  if (at < 0) return Object.hasOwn(labels, wanted)
  const name = wanted.slice(0, at)
  return Object.hasOwn(labels, name) && labels[name] === wanted.slice(at + 1)
}

// ── final tasks ───────────────────────────────────────────────────────────────

interface FinalTasks {
  readonly first: readonly TaskRecord[]
  /** The order was looked through up to here; null: to its end. */
  readonly reach: TaskPosition | null
}

/** Newest or oldest first: the routes refuse other orders of final tasks. */
export async function firstFinal(
  views: Views,
  filter: TaskFilter,
  { sort, after, limit }: PageRequest,
): Promise<FinalTasks> {
  const states = filter.states.filter(isFinal)
  if (states.length === 0) return { first: [], reach: null }
  const isOldestFirst = sort === 'oldest'
  const { priority, group, label, without_owner: isUnowned } = filter
  const isSifted = [priority, group, label].some((value) => value !== undefined) || isUnowned === true
  const pageSize = isSifted ? STORE_PAGE_SIZE : limit + 1
  const known = {
    states,
    owner: filter.owner ?? null,
    nameContains: filter.q ?? null,
    nodeId: filter.node ?? null,
  }
  const first: TaskRecord[] = []
  let last: TaskPosition | null = after
  for (let pages = 0; pages < STORE_PAGES; pages += 1) {
    const seq = last?.seq ?? null
    const bounds = isOldestFirst ? { beforeSeq: null, afterSeq: seq } : { beforeSeq: seq, afterSeq: null }
    const query: FinishedQuery = { ...known, ...bounds, isOldestFirst, limit: pageSize }
    const records = await views.stored.finishedTasks(query)
    first.push(...records.filter((record) => sifts(record, filter)))
    const end = records.at(-1)
    if (end !== undefined) last = { seq: end.seq, priority: end.priority, name: end.name, starved_seconds: 0 }
    if (records.length < pageSize || first.length > limit)
      return { first: first.slice(0, limit + 1), reach: null }
  }
  return { first, reach: last }
}

function sifts(
  record: TaskRecord,
  { priority, group, label, without_owner: isUnowned }: TaskFilter,
): boolean {
  return (
    (isUnowned !== true || record.owner === null) &&
    (priority === undefined || record.priority === priority) &&
    (group === undefined || record.groups.includes(group)) &&
    (label === undefined || hasLabel(record.labels, label))
  )
}

// ── the page ──────────────────────────────────────────────────────────────────

/** A task that became final between the two looks is in both: the store's word counts. */
function merged(
  open: readonly TaskBody[],
  final: readonly TaskBody[],
  order: (a: TaskBody, b: TaskBody) => number,
): readonly TaskBody[] {
  const finished = new Set(final.map((task) => task.id))
  return [...open.filter((task) => !finished.has(task.id)), ...final].sort(order)
}

function totalOf(views: Views, filter: TaskFilter, open: number | null): number | null {
  const finalStates = filter.states.filter(isFinal)
  if (finalStates.length === 0) return open
  return isFiltered(filter) || open === null ? null : open + countOfStates(views, finalStates)
}

/** By something else than states. */
function isFiltered({
  priority,
  node,
  group,
  owner,
  without_owner: isUnowned,
  q,
  label,
}: TaskFilter): boolean {
  return isUnowned === true || [priority, node, group, owner, q, label].some((value) => value !== undefined)
}

function countOfStates(views: Views, states: readonly TaskState[]): number {
  if (states.length === 1 && states[0] === 'pending') return views.pendingCount()
  const counts = views.counts()
  return states.reduce((sum, state) => sum + counts[state], 0)
}
