/**
 * The series of a controller: sampled by its clock, kept at several resolutions, restored after a restart.
 * The only place that keeps the history of the cluster; /summary reads the last minute from it.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Views } from '../query/views.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import { RANK_DECISION } from '../ports/clock.ts'
import type { SeriesArchive } from '../ports/series-archive.ts'
import { SeriesKeeper } from './keeper.ts'
import { gridOf, readSeries, recentGrid, type Grid, type SeriesColumn, type SeriesQuery } from './query.ts'
import type { Tables } from './node-sampler.ts'
import { RecentWindow, type SeriesWindow } from './recent-window.ts'
import type { MeasureName } from './measures.ts'
import { BASE_SLOT_MS, TABLE_KINDS, type TableKind } from './retention.ts'
import { Sampler } from './sampler.ts'
import { swapStorms, type SwapStorm } from './storms.ts'
import { SeriesTable } from './table.ts'
import { WakeCounts } from './wake-counts.ts'
import type { EventSource } from '../engine/durable-events.ts'

export interface SeriesAnswer {
  readonly grid: Grid
  readonly columns: readonly SeriesColumn[]
  readonly storms: readonly SwapStorm[]
}

export interface RecentFigures {
  readonly from: Instant
  readonly to: Instant
  /** @param place of the key in the request. null: unknown */
  of(place: number, name: MeasureName): number | null
}

export class Series {
  readonly tables: Tables = {
    cluster: new SeriesTable('cluster'),
    group: new SeriesTable('group'),
    node: new SeriesTable('node'),
    gpu: new SeriesTable('gpu'),
  }
  readonly #views: Views
  readonly #sampler: Sampler
  readonly #recent: RecentWindow
  readonly #events: EventSource | null
  readonly #wakes: WakeCounts
  /** Null before the first reading. Without a reader, nothing is counted. */
  #unfollow: (() => void) | null = null
  #cancelTimer: CancelTimer = () => {}
  #isStopped = false
  #isRestoring = false
  #ready: Promise<void> = Promise.resolve()

  /** @param events without them no wakes are counted */
  constructor(views: Views, events: EventSource | null = null) {
    this.#views = views
    this.#events = events
    this.#wakes = new WakeCounts(views)
    this.#sampler = new Sampler(views, this.tables, this.#wakes)
    this.#recent = new RecentWindow(views, this.#sampler)
  }

  /** Restores the archived series, then samples. Callers need not wait: missing values are unknown. */
  start(clock: Clock, archive: SeriesArchive | null): void {
    this.#ready = this.#start(clock, archive)
  }

  /** Resolves when archived series are restored and the first reading is taken. */
  get ready(): Promise<void> {
    return this.#ready
  }

  async #start(clock: Clock, archive: SeriesArchive | null): Promise<void> {
    if (archive !== null) {
      this.#isRestoring = true
      await new SeriesKeeper(archive).restore(this.tables, this.#views.now())
      this.#isRestoring = false
    }
    if (this.#isStopped) return
    this.take()
    this.#plan(clock)
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
    this.#unfollow?.()
  }

  /** Takes a reading if one is due; not needed with a clock. */
  take(): void {
    // New rows would precede the archived ones.
    if (this.#isRestoring) return
    if (this.#events !== null && !this.#isStopped) this.#unfollow ??= this.#wakes.follow(this.#events)
    this.#sampler.take()
    this.#recent.note()
  }

  /** The last minute, until now; null in the first second. */
  lastMinute(): SeriesWindow | null {
    return this.#recent.window()
  }

  /** @throws nothing: unknown values are null */
  answer(query: SeriesQuery): SeriesAnswer {
    const grid = this.grid(query)
    const columns = readSeries(this.tables, query, grid)
    const to = grid.from + grid.points * grid.stepMs
    return { grid, columns, storms: swapStorms(this.tables.cluster, grid.tier, grid.from, to) }
  }

  /** One value per scope and name over the last `ms`, and the range that it covers. */
  recent(
    kind: TableKind,
    {
      names,
      keys,
      ms,
    }: { readonly names: readonly MeasureName[]; readonly keys: readonly string[]; readonly ms: DurationMs },
  ): RecentFigures {
    const now = this.#views.now()
    const grid = recentGrid(this.tables, kind, now, ms)
    const scopes = keys.map((key) => ({ kind, key }))
    const query = { names, scopes, from: grid.from, to: now, maxPoints: 1 }
    const columns = readSeries(this.tables, query, grid)
    return {
      from: grid.from,
      to: now,
      of: (place, name) => columns[place * names.length + names.indexOf(name)]?.values[0] ?? null,
    }
  }

  /** The layout of the answer. */
  grid(query: SeriesQuery): Grid {
    return gridOf(this.tables, query)
  }

  /** Approximate memory of all rows, bytes. */
  get bytes(): number {
    return TABLE_KINDS.reduce(
      (sum, kind) => sum + this.tables[kind].tiers.reduce((own, tier) => own + tier.bytes, 0),
      0,
    )
  }

  #plan(clock: Clock): void {
    const at = nextSlotAfter(clock.now(), BASE_SLOT_MS)
    this.#cancelTimer = clock.at(at, () => this.#go(clock, this.#sampler.steps()), RANK_DECISION)
  }

  /** Runs one step after the other, yielding in between. */
  #go(clock: Clock, steps: Generator<void, void>): void {
    if (steps.next().done !== true) {
      this.#cancelTimer = clock.at(clock.now() + 1, () => this.#go(clock, steps), RANK_DECISION)
      return
    }
    this.#recent.note()
    this.#plan(clock)
  }
}

function nextSlotAfter(now: Instant, slotMs: DurationMs): Instant {
  return (Math.floor(now / slotMs) + 1) * slotMs
}
