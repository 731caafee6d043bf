/**
 * The series of a controller: sampled by its clock, kept at several resolutions, brought back after a
 * restart. The one place that knows how the cluster did over time; /summary asks it about the last minute.
 */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Views } from '../engine/views.ts'
import type { CancelTimer, Clock } from '../ports/clock.ts'
import { RANK_DECISION } from '../ports/clock.ts'
import type { SeriesArchive } from '../ports/series-archive.ts'
import { SeriesKeeper } from './keeper.ts'
import { gridOf, readSeries, type Grid, type SeriesColumn, type SeriesQuery } from './query.ts'
import type { Tables } from './node-sampler.ts'
import { RecentWindow, type SeriesWindow } from './recent-window.ts'
import { BASE_SLOT_MS, TABLE_KINDS } from './retention.ts'
import { Sampler } from './sampler.ts'
import { swapStorms, type SwapStorm } from './storms.ts'
import { SeriesTable } from './table.ts'

export interface SeriesAnswer {
  readonly grid: Grid
  readonly columns: readonly SeriesColumn[]
  readonly storms: readonly SwapStorm[]
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
  #cancelTimer: CancelTimer = () => {}
  #isStopped = false
  #isRestoring = false
  #ready: Promise<void> = Promise.resolve()

  constructor(views: Views) {
    this.#views = views
    this.#sampler = new Sampler(views, this.tables)
    this.#recent = new RecentWindow(views, this.#sampler)
  }

  /**
   * Brings back what was kept, and samples from then on: nobody need wait for it, and what is not there yet
   * is not known.
   */
  start(clock: Clock, archive: SeriesArchive | null): void {
    this.#ready = this.#start(clock, archive)
  }

  /** Resolves when what was kept is there and the first reading is taken. */
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
  }

  /** Takes a reading if one is due: who samples by a clock need not call it. */
  take(): void {
    // What is new would stand before what was kept.
    if (this.#isRestoring) return
    this.#sampler.take()
    this.#recent.note()
  }

  /** About the last minute, until now; null before there is a second of it. */
  lastMinute(): SeriesWindow | null {
    return this.#recent.window()
  }

  /** @throws nothing: what is not known is null */
  answer(query: SeriesQuery): SeriesAnswer {
    const grid = this.grid(query)
    const columns = readSeries(this.tables, query, grid)
    const to = grid.from + grid.points * grid.stepMs
    return { grid, columns, storms: swapStorms(this.tables.cluster, grid.tier, grid.from, to) }
  }

  /** How the answer will be laid out. */
  grid(query: SeriesQuery): Grid {
    return gridOf(this.tables, query)
  }

  /** What all rows take of memory, about; bytes. */
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

  /** One step after the other, with time for everything else between them. */
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
