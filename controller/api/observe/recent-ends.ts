/**
 * Tasks that failed or were lost within the last hour, read from the events of the store: a restart forgets
 * none.
 */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { Views } from '../../query/views.ts'

const WINDOW_MS: DurationMs = 3_600_000
/** The events that are new are read again after this. */
const FRESH_MS: DurationMs = 2_000
/** Events read at a time. */
const PAGE = 500
/** Ends that are remembered; beyond it the figure begins with the oldest of them. */
const MAX_ENDS = 100_000
/** A reader waits this long for the store, then has what was known before. */
const WAIT_MS: DurationMs = 250

export interface RecentEnds {
  /** An hour ago, or the oldest event that is kept where that is later. */
  readonly since: Instant
  readonly failed: number
  readonly lost: number
}

interface End {
  readonly seq: number
  readonly at: Instant
  readonly state: 'failed' | 'lost'
}

export class EndsOfTheHour {
  readonly #views: Views
  readonly #ends: End[] = []
  #readTo: number | null = null
  #keptFrom: Instant = -Infinity
  #readAt: Instant = -Infinity
  #reading: Promise<void> | null = null

  constructor(views: Views) {
    this.#views = views
  }

  /** Returns the ends read so far, and continues reading. null: no ends were read yet. */
  latest(): RecentEnds | null {
    const now = this.#views.now()
    // A store that does not answer leaves the figure as it was; readiness and alarms tell of it.
    if (now < this.#readAt || now - this.#readAt >= FRESH_MS) void this.#refresh().catch(() => {})
    if (this.#readTo === null) return null
    const since = Math.max(now - WINDOW_MS, this.#keptFrom)
    const within = this.#ends.filter(({ at }) => at >= since)
    const failed = within.filter(({ state }) => state === 'failed').length
    return { since, failed, lost: within.length - failed }
  }

  /** Reads the new ends first, unless the store is slow. */
  async current(): Promise<RecentEnds | null> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, WAIT_MS)))
    await Promise.race([this.#refresh().catch(() => {}), late])
    clearTimeout(timer)
    return this.latest()
  }

  /** One reading at a time. */
  #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #read(): Promise<void> {
    const { stored } = this.#views
    const now = this.#views.now()
    const { firstSeq, lastSeq } = await stored.eventRange()
    // A session may go back in time: what was read has not happened then.
    if (now < this.#readAt || lastSeq < (this.#readTo ?? 0)) this.#forget()
    if (this.#readTo === null) this.#keptFrom = await this.#oldestKept(firstSeq)
    await this.#readEnds(this.#readTo ?? firstSeq - 1, now - WINDOW_MS)
    this.#readTo = lastSeq
    this.#readAt = now
    this.#drop(now)
  }

  #drop(now: Instant): void {
    const first = this.#ends.findIndex(({ at }) => at >= now - WINDOW_MS)
    const expired = first < 0 ? this.#ends.length : first
    const excess = this.#ends.length - MAX_ENDS
    if (excess > expired) this.#keptFrom = (this.#ends[excess - 1] as End).at + 1
    this.#ends.splice(0, Math.max(expired, excess))
  }

  async #readEnds(after: number, fromAt: Instant): Promise<void> {
    let afterSeq = after
    for (;;) {
      const page = await this.#views.stored.events({
        kinds: ['task_finished'],
        afterSeq,
        fromAt,
        limit: PAGE,
      })
      for (const { seq, at, data } of page) {
        const { state } = data
        if (state === 'failed' || state === 'lost') this.#ends.push({ seq, at, state })
      }
      const last = page.at(-1)
      if (last === undefined || page.length < PAGE) return
      afterSeq = last.seq
    }
  }

  /** All that ever happened is kept where the first event is. */
  async #oldestKept(firstSeq: number): Promise<Instant> {
    if (firstSeq <= 1) return -Infinity
    const [oldest] = await this.#views.stored.events({ afterSeq: firstSeq - 1, limit: 1 })
    return oldest?.at ?? this.#views.now()
  }

  #forget(): void {
    this.#ends.length = 0
    this.#readTo = null
    this.#readAt = -Infinity
  }
}
