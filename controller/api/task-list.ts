/**
 * Tasks from two sources that are one list to the reader: open ones in memory, final ones in the store. A page begins after a position in its
 * order, so tasks that arrive or end meanwhile shift nothing.
 */
import { isFinal, listOf, type Task, type TaskState } from '../domain/task.ts'
import type { Views } from '../engine/views.ts'
import type { FinishedQuery, TaskRecord } from '../ports/store.ts'
import { presentWithinBytes, withinBytes } from './page-bytes.ts'
import { PENDING_LOOKED_AT } from './pending-reasons.ts'
import { presentTask, presentTaskRecord } from './present/task.ts'
import { TASK_STATES, type TaskBody, type TaskQuery } from './schema/task.ts'
import { TASK_ORDERS, type TaskPosition, type TaskSort } from './task-order.ts'

export interface TaskFilter extends Pick<TaskQuery, 'priority' | 'node' | 'group' | 'owner' | 'q' | 'label' | 'reason'> {
  readonly states: readonly TaskState[]
}

/** Which page: so many tasks after a position of the order; null: from its beginning. */
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

/** A filter on final tasks that the store does not know is applied to at most this many of its pages, then the page ends early. */
const STORE_PAGES = 10
const STORE_PAGE_SIZE = 200
/** So many open tasks are looked at before others get their turn. */
const SLICE_TASKS = 20_000
/** Tasks are explained for so long before others get their turn, and for so long in all: an explanation may take 2 ms. */
const EXPLAINING_SLICE_MS = 10
const EXPLAINING_MS = 250
/** Among more open tasks those that match a filter are not counted: a page is found without looking at all of them. */
const COUNTED_TASKS = 20_000
const OPEN_STATES: readonly TaskState[] = TASK_STATES.filter((state) => !isFinal(state))

/** Which exact states a `state` parameter means: a list of the specification, an exact state, or all. */
export function statesOf(state: TaskQuery['state']): readonly TaskState[] {
  if (state === undefined || state === 'all') return TASK_STATES
  if (state === 'running' || state === 'pending' || state === 'completed') return TASK_STATES.filter((one) => listOf(one) === state)
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
  const open = filter.reason === undefined ? await firstOpen(views, filter, page) : await firstWaiting(views, filter, page, elapsedMs)
  // What ended while others had their turn is the store's to show.
  const shownOpen = presentWithinBytes(
    open.first.filter((task) => matches(task, filter)),
    (task) => presentTask(task, views),
  )
  // What is final waits for nothing.
  const final = filter.reason === undefined ? await firstFinal(views, filter, page) : { first: [], reach: null }
  const shown = merged(shownOpen, final.first.map(presentTaskRecord), order)
  const reached = final.reach === null ? shown : shown.filter((task) => order(task, final.reach as TaskPosition) <= 0)
  const items = withinBytes(reached.slice(0, page.limit))
  const hasMore = reached.length > items.length
  return {
    items,
    next: hasMore ? (items.at(-1) ?? null) : final.reach,
    total: filter.reason === undefined ? totalOf(views, filter, open.total) : open.total,
  }
}

// ── open tasks ────────────────────────────────────────────────────────────────

interface OpenTasks {
  /** In order, one more than the page holds at most. */
  readonly first: readonly Task[]
  /** How many match, on all pages; null when too many would have to be looked at. */
  readonly total: number | null
}

async function firstOpen(views: Views, filter: TaskFilter, { sort, after, limit }: PageRequest): Promise<OpenTasks> {
  const states = filter.states.filter((state) => !isFinal(state))
  if (states.length === 0) return { first: [], total: 0 }
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
    if (after === null || order(task.spec, after) > 0) first.add(task)
    if (endsEarly && first.count > limit) break
  }
  return { first: first.inOrder(), total: known ?? (endsEarly ? null : total) }
}

/**
 * Those whose first reason to wait is this one: among the first in order of submission, as many as the summary counts its reasons over, because to
 * say why a task waits is a look at the cluster. So `state=pending` and a reason give the tasks that the summary has counted, and more of
 * the same where its time was over first.
 */
async function firstWaiting(
  views: Views,
  filter: TaskFilter,
  { sort, after, limit }: PageRequest,
  elapsedMs: () => number,
): Promise<OpenTasks> {
  const first = new FirstOf(sort, limit + 1)
  const order = TASK_ORDERS[sort]
  let looked = 0
  let total = 0
  let spentMs = 0
  let sliceEnds = elapsedMs() + EXPLAINING_SLICE_MS
  for (const task of views.openTasks()) {
    if (!matches(task, filter)) continue
    if (looked === PENDING_LOOKED_AT) break
    looked += 1
    if (elapsedMs() > sliceEnds) {
      spentMs += elapsedMs() - sliceEnds + EXPLAINING_SLICE_MS
      if (spentMs > EXPLAINING_MS) return { first: first.inOrder(), total: null }
      await others()
      sliceEnds = elapsedMs() + EXPLAINING_SLICE_MS
    }
    if (views.explain(task)?.primary.reason !== filter.reason) continue
    total += 1
    if (after === null || order(task.spec, after) > 0) first.add(task)
  }
  return { first: first.inOrder(), total }
}

/** Those among which the page's are: only the placed ones, or all, newest first where the page is in that order. */
function candidates(views: Views, states: readonly TaskState[], isInOrder: boolean, beforeSeq: number): Iterable<Task> {
  if (!states.includes('pending')) return views.placedTasks()
  return isInOrder ? views.openTasksBefore(beforeSeq) : views.openTasks()
}

function others(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** The first n of an order, of any number that is offered; a few n are held at a time. */
class FirstOf {
  readonly #order: (a: TaskPosition, b: TaskPosition) => number
  readonly #count: number
  #held: Task[] = []
  /** Whoever comes after it is not among the first. */
  #last: Task | null = null

  constructor(sort: TaskSort, count: number) {
    this.#order = TASK_ORDERS[sort]
    this.#count = count
  }

  /** How many are held. */
  get count(): number {
    return this.#held.length
  }

  add(task: Task): void {
    if (this.#last !== null && this.#order(task.spec, this.#last.spec) > 0) return
    this.#held.push(task)
    if (this.#held.length < 8 * this.#count) return
    this.#held = this.inOrder()
    this.#last = this.#held.at(-1) ?? null
  }

  inOrder(): Task[] {
    return this.#held.toSorted((a, b) => this.#order(a.spec, b.spec)).slice(0, this.#count)
  }
}

function matches({ state, spec, placement }: Task, { states, priority, node, group, owner, q, label }: TaskFilter): boolean {
  return (
    states.includes(state) &&
    (priority === undefined || spec.priority === priority) &&
    (node === undefined || placement?.node.id === node) &&
    (group === undefined || spec.groups.includes(group)) &&
    (owner === undefined || spec.owner === owner) &&
    (q === undefined || spec.name.includes(q) || spec.id === q) &&
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
async function firstFinal(views: Views, filter: TaskFilter, { sort, after, limit }: PageRequest): Promise<FinalTasks> {
  const states = filter.states.filter(isFinal)
  if (states.length === 0) return { first: [], reach: null }
  const isOldestFirst = sort === 'oldest'
  const isSifted = filter.priority !== undefined || filter.group !== undefined || filter.label !== undefined
  const pageSize = isSifted ? STORE_PAGE_SIZE : limit + 1
  const known = { states, owner: filter.owner ?? null, nameContains: filter.q ?? null, nodeId: filter.node ?? null }
  const first: TaskRecord[] = []
  let last: TaskPosition | null = after
  for (let pages = 0; pages < STORE_PAGES; pages += 1) {
    const seq = last?.seq ?? null
    const bounds = isOldestFirst ? { beforeSeq: null, afterSeq: seq } : { beforeSeq: seq, afterSeq: null }
    const query: FinishedQuery = { ...known, ...bounds, isOldestFirst, limit: pageSize }
    const records = await views.stored.finishedTasks(query)
    first.push(...records.filter((record) => sifts(record, filter)))
    last = records.at(-1) ?? last
    if (records.length < pageSize || first.length > limit) return { first: first.slice(0, limit + 1), reach: null }
  }
  return { first, reach: last }
}

function sifts(record: TaskRecord, { priority, group, label }: TaskFilter): boolean {
  return (
    (priority === undefined || record.priority === priority) &&
    (group === undefined || record.groups.includes(group)) &&
    (label === undefined || hasLabel(record.labels, label))
  )
}

// ── the page ──────────────────────────────────────────────────────────────────

/** A task that became final between the two looks is in both: the store's word counts. */
function merged(open: readonly TaskBody[], final: readonly TaskBody[], order: (a: TaskBody, b: TaskBody) => number): readonly TaskBody[] {
  const finished = new Set(final.map((task) => task.id))
  return [...open.filter((task) => !finished.has(task.id)), ...final].sort(order)
}

function totalOf(views: Views, filter: TaskFilter, open: number | null): number | null {
  const finalStates = filter.states.filter(isFinal)
  if (finalStates.length === 0) return open
  return isFiltered(filter) || open === null ? null : open + countOfStates(views, finalStates)
}

/** By something else than states. */
function isFiltered({ priority, node, group, owner, q, label }: TaskFilter): boolean {
  return [priority, node, group, owner, q, label].some((value) => value !== undefined)
}

function countOfStates(views: Views, states: readonly TaskState[]): number {
  if (states.length === 1 && states[0] === 'pending') return views.pendingCount()
  const counts = views.counts()
  return states.reduce((sum, state) => sum + counts[state], 0)
}
