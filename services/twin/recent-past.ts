/** Recent history, from the store and from memory: bounded, and refreshed only from time to time. */
import type { Views } from '../../controller/query/views.ts'
import type { TaskRecord } from '../../controller/ports/store.ts'
import type { NodeSpeeds, RecentPast } from '../../controller/ports/twin.ts'

const PAST_MS = 24 * 3_600_000
/** Newest submissions first. */
const MAX_ENDED = 2_000
const PAGE = 500
const FRESH_MS = 30_000

export class RecentPastReader {
  readonly #views: Views
  readonly #speeds: () => readonly NodeSpeeds[]
  #ended: { readonly at: number; readonly read: Promise<readonly TaskRecord[]> } | null = null

  constructor(views: Views, speeds: () => readonly NodeSpeeds[]) {
    this.#views = views
    this.#speeds = speeds
  }

  /** Rejects with StoreFault. */
  async read(): Promise<RecentPast> {
    const to = this.#views.now()
    if (this.#ended === null || to - this.#ended.at > FRESH_MS || to < this.#ended.at)
      this.#ended = { at: to, read: this.#readEnded(to) }
    const ended = await this.#ended.read.catch((fault: unknown) => {
      this.#ended = null
      throw fault
    })
    // If not all of the day was read, the period is the part that was read.
    const from = ended.length < MAX_ENDED ? to - PAST_MS : (ended.at(-1)?.submittedAt ?? to)
    const since = Math.max(from, this.#views.now() - PAST_MS, firstSubmission(ended, this.#views) ?? from)
    return { from: since, to, ended, runs: this.#views.activityRuns(), speeds: this.#speeds() }
  }

  async #readEnded(now: number): Promise<readonly TaskRecord[]> {
    const ended: TaskRecord[] = []
    for (let beforeSeq: number | null = null; ended.length < MAX_ENDED;) {
      const page = await this.#views.stored.finishedTasks({ ...ANY, beforeSeq, limit: PAGE })
      ended.push(...page.map((record) => ({ ...record, labels: {}, command: null, endReason: null })))
      const last = page.at(-1)
      if (page.length < PAGE || last === undefined || last.submittedAt < now - PAST_MS) break
      beforeSeq = last.seq
    }
    return ended.filter(({ submittedAt }) => submittedAt >= now - PAST_MS).slice(0, MAX_ENDED)
  }
}

/** A cluster younger than a day: its past starts with its first task. */
function firstSubmission(ended: readonly TaskRecord[], views: Views): number | null {
  let first = ended.at(-1)?.submittedAt ?? null
  for (const { spec } of views.openTasks()) {
    if (first === null || spec.submittedAt < first) first = spec.submittedAt
    break
  }
  return first
}

const ANY = {
  states: ['completed', 'failed', 'cancelled', 'lost'],
  owner: null,
  nameContains: null,
  nodeId: null,
  afterSeq: null,
  isOldestFirst: false,
} as const
