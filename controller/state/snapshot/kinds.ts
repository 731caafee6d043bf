/**
 * Kinds of fields in a snapshot, each in both directions. References are numbers: tasks in the order of the
 * snapshot's tasks, nodes in that of its nodes, GPUs by node and index, entries by node and place in its
 * queue.
 */
import type { Gpu, Node, Placement, QueueEntry, Reservation, Task } from '../../model/placement.ts'
import type { CancelTimer, TimerId } from '../../ports/clock.ts'
import type { ClassRound, GpuRounds, SwapMark } from '../../policy/swap/rounds.ts'
import { newGpuRounds } from '../../policy/swap/rounds.ts'
import type {
  GpuIndex,
  LiveEntry,
  LiveGpu,
  LiveNode,
  LivePlacement,
  LiveTask,
  NodePool,
  TaskQueue,
} from '../facts.ts'

export type Captured = Record<string, unknown>
export type EntryNumber = readonly [node: number, place: number]

/** Numbers for objects. */
class Numbered<T> {
  readonly items: T[] = []
  readonly #numbers = new Map<T, number>()

  constructor(items: Iterable<T> = []) {
    for (const item of items) this.of(item)
  }

  has(item: T): boolean {
    return this.#numbers.has(item)
  }

  /** Returns the number of the item, which is added if it has none. */
  of(item: T): number {
    const known = this.#numbers.get(item)
    if (known !== undefined) return known
    const number = this.items.push(item) - 1
    this.#numbers.set(item, number)
    return number
  }
}

/** The objects that the numbers of a snapshot stand for. */
export class References {
  readonly tasks: Numbered<LiveTask>
  readonly nodes: Numbered<LiveNode>
  readonly reservations = new Numbered<Reservation>()
  readonly timerId: (cancel: CancelTimer) => TimerId
  #entries: ReadonlyMap<LiveEntry, EntryNumber> | null = null

  constructor(
    tasks: Iterable<LiveTask>,
    nodes: Iterable<LiveNode>,
    timerId: (cancel: CancelTimer) => TimerId = () => NO_TIMER,
  ) {
    this.tasks = new Numbered(tasks)
    this.nodes = new Numbered(nodes)
    this.timerId = timerId
  }

  task(number: number): LiveTask {
    return this.tasks.items[number] as LiveTask
  }

  node(number: number): LiveNode {
    return this.nodes.items[number] as LiveNode
  }

  gpuNumber({ node, index }: LiveGpu): readonly [node: number, index: number] {
    return [this.nodes.of(node), index]
  }

  gpu([node, index]: readonly [node: number, index: number]): LiveGpu {
    return this.node(node).gpus[index] as LiveGpu
  }

  /** Null: the entry has left its queue. */
  entryNumber(entry: LiveEntry | null): EntryNumber | null {
    this.#entries ??= new Map(
      this.nodes.items.flatMap(({ queue }, node) =>
        queue.map((each, place) => [each, [node, place] as const] as const),
      ),
    )
    return entry === null ? null : (this.#entries.get(entry) ?? null)
  }

  entry(number: EntryNumber | null): LiveEntry | null {
    return number === null ? null : (this.node(number[0]).queue[number[1]] as LiveEntry)
  }
}

const NO_TIMER: TimerId = { due: 0, rank: 0, number: 0 }

interface Direction<T, J> {
  readonly capture: (value: T, refs: References) => J
  readonly restore: (json: J, refs: References) => T
}
const kind = <T, J>(
  capture: Direction<T, J>['capture'],
  restore: Direction<T, J>['restore'],
): Direction<unknown, unknown> => ({ capture, restore }) as unknown as Direction<unknown, unknown>

const KINDS = {
  /** Never changed in place. */
  value: kind(asIs, asIs),
  /** Changed in place: an object with values only. */
  copy: kind(copied, copied),
  map: kind(
    (map: ReadonlyMap<string, number> | null) => (map === null ? null : [...map]),
    (entries) => (entries === null ? null : new Map(entries)),
  ),
  task: kind(
    (task: LiveTask | null, refs) => (task === null ? null : refs.tasks.of(task)),
    (number, refs) => (number === null ? null : refs.task(number)),
  ),
  nodes: kind(
    (nodes: ReadonlySet<LiveNode> | null, refs) =>
      nodes === null ? null : Array.from(nodes, (node) => refs.nodes.of(node)),
    (numbers, refs) => (numbers === null ? null : new Set(numbers.map((number) => refs.node(number)))),
  ),
  entry: kind(
    (entry: LiveEntry | null, refs) => refs.entryNumber(entry),
    (number, refs) => refs.entry(number),
  ),
  entries: kind(
    (entries: readonly LiveEntry[], refs) => entries.map((entry) => refs.entryNumber(entry)),
    (numbers, refs) => numbers.map((number) => refs.entry(number) as LiveEntry),
  ),
  placements: kind(
    (placements: readonly LivePlacement[], refs) => placements.map(({ task }) => refs.tasks.of(task)),
    (numbers, refs) => numbers.map((number) => refs.task(number).placement as LivePlacement),
  ),
  reservations: kind(
    (reservations: readonly Reservation[], refs) => reservations.map((each) => refs.reservations.of(each)),
    (numbers, refs) => numbers.map((number) => refs.reservations.items[number] as Reservation),
  ),
  rounds: kind(
    ({ p0, non_p0, p0_warm, non_p0_warm }: GpuRounds) => ({
      p0: roundOf(p0),
      non_p0: roundOf(non_p0),
      ...(isUnused(p0_warm) ? {} : { p0_warm: roundOf(p0_warm) }),
      ...(isUnused(non_p0_warm) ? {} : { non_p0_warm: roundOf(non_p0_warm) }),
    }),
    ({ p0, non_p0, p0_warm, non_p0_warm }) => ({
      ...newGpuRounds(),
      p0: withMarks(p0),
      non_p0: withMarks(non_p0),
      ...(p0_warm === undefined ? {} : { p0_warm: withMarks(p0_warm) }),
      ...(non_p0_warm === undefined ? {} : { non_p0_warm: withMarks(non_p0_warm) }),
    }),
  ),
  meter: kind(
    ({ sharers, ...meter }: LiveGpu['meter'], refs) => ({
      ...meter,
      sharers: sharers.map((sharer) => refs.tasks.of((sharer as LivePlacement).task)),
    }),
    ({ sharers, ...meter }, refs) => ({
      ...meter,
      sharers: sharers.map((number) => refs.task(number).placement as LivePlacement),
    }),
  ),
  /** Set again by the owner, which knows what it does. */
  timer: kind(
    (cancel: CancelTimer | null, refs) => (cancel === null ? null : refs.timerId(cancel)),
    () => null,
  ),
} as const
type Kind = keyof typeof KINDS

type Reference = Task | Node | Gpu | Placement | QueueEntry | Reservation | TaskQueue | NodePool | GpuIndex
type Unserializable =
  Reference | ReadonlyMap<never, never> | ReadonlySet<never> | ((...args: never) => unknown)
type IsValue<T> = T extends Unserializable ? false : T extends readonly (infer E)[] ? IsValue<E> : true
type Listed<T> = { [K in keyof T]-?: false extends IsValue<T[K]> ? K : never }[keyof T]
/** Null: not captured. It is rebuilt, or the owner of the object captures it. */
export type Fields<T> = { readonly [K in Listed<T>]: Kind | null } & { readonly [K in keyof T]?: Kind | null }

export function captureFields<T extends object>(object: T, fields: Fields<T>, refs: References): Captured {
  const captured: Captured = {}
  for (const name of namesOf(object, fields))
    captured[name] = KINDS[kindIn(fields, name)].capture(object[name], refs)
  return captured
}

/** Sets the captured fields of the object. */
export function restoreFields<T extends object>(
  object: T,
  captured: Captured,
  fields: Fields<T>,
  refs: References,
): void {
  for (const name of namesOf(object, fields))
    object[name] = KINDS[kindIn(fields, name)].restore(captured[name], refs) as T[keyof T & string]
}

const namesByFields = new WeakMap<object, readonly string[]>()

/** All objects with these fields have the same names. */
function namesOf<T extends object>(object: T, fields: Fields<T>): readonly (keyof T & string)[] {
  let names = namesByFields.get(fields)
  if (names === undefined) {
    names = Object.keys(object).filter((name) => fields[name as keyof T] !== null)
    namesByFields.set(fields, names)
  }
  return names as readonly (keyof T & string)[]
}

function kindIn<T>(fields: Fields<T>, name: keyof T): Kind {
  return fields[name] ?? 'value'
}

function asIs(value: unknown): unknown {
  return value
}

function copied(value: object): object {
  return { ...value }
}

function roundOf({ round, marks }: ClassRound): { round: number; marks: (readonly [string, SwapMark])[] } {
  return { round, marks: [...marks] }
}

function isUnused({ round, marks }: ClassRound): boolean {
  return round === 0 && marks.size === 0
}

function withMarks({ round, marks }: ReturnType<typeof roundOf>): ClassRound {
  return { round, marks: new Map(marks) }
}
