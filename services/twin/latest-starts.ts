/** Caches the forecast of starts for many requests. */
import type { Views } from '../../controller/query/views.ts'
import type { NoForecast, StartForecast } from '../../controller/ports/twin.ts'
import type { Instant } from '../../protocol/units.ts'
import { errorText } from '../../protocol/error-text.ts'

type Answer = StartForecast | NoForecast

/** Lifetime of a forecast in the cache. */
const FRESH_MS = 10_000

export class LatestStarts {
  readonly #views: Pick<Views, 'now'>
  readonly #make: () => Promise<Answer>
  #asked: { readonly at: Instant; readonly answer: Promise<Answer> } | null = null
  #latest: Answer | null = null

  constructor(views: Pick<Views, 'now'>, make: () => Promise<Answer>) {
    this.#views = views
    this.#make = make
  }

  get(mustBeFresh: boolean): Promise<Answer> {
    const now = this.#views.now()
    const asked = this.#asked
    const isFresh =
      asked !== null && now >= asked.at && (mustBeFresh ? now === asked.at : now - asked.at <= FRESH_MS)
    if (asked !== null && isFresh) return asked.answer
    const answer = this.#make().catch((fault: unknown): NoForecast => {
      return { reason: 'FAILED', detail: errorText(fault) }
    })
    this.#asked = { at: now, answer }
    void answer.then((made) => (this.#latest = made))
    return answer
  }

  latest(): Answer | null {
    void this.get(false)
    return this.#latest
  }
}
