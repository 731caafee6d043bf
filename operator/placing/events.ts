/** Events of Kubernetes: what has changed, where `kubectl describe` shows it. Each says one change once. */
import type { DurationMs, Instant } from '../../protocol/units.ts'
import { DOMAIN } from '../contract/names.ts'
import { EVENTS, type KubeApi } from '../ports/kube-api.ts'

export interface EventSubject {
  readonly apiVersion: string
  readonly kind: string
  /** Absent: of the whole cluster. */
  readonly namespace?: string
  readonly name: string
  readonly uid: string
}

export interface Happening {
  readonly type: 'Normal' | 'Warning'
  /** CamelCase. */
  readonly reason: string
  readonly note: string
}

/** Two pods that take turns change places often. */
const REPEAT_AFTER_MS: DurationMs = 60_000
const MAX_NOTE = 1024
const MAX_REMEMBERED = 10_000
const CONTROLLER = `${DOMAIN}/operator`

export class Events {
  readonly #api: KubeApi
  readonly #now: () => Instant
  readonly #instance: string
  /** Time of the last event, by subject and reason. */
  readonly #lastAt = new Map<string, Instant>()

  constructor(api: KubeApi, now: () => Instant, instance: string) {
    this.#api = api
    this.#now = now
    this.#instance = instance
  }

  /** The same event of one subject is reported at most once a minute. */
  async tell(regarding: EventSubject, { type, reason, note }: Happening): Promise<void> {
    const key = `${regarding.uid} ${reason}`
    const now = this.#now()
    if (now - (this.#lastAt.get(key) ?? -Infinity) < REPEAT_AFTER_MS) return
    if (this.#lastAt.size >= MAX_REMEMBERED) this.#lastAt.clear()
    this.#lastAt.set(key, now)
    await this.#api.create(EVENTS, {
      metadata: { namespace: regarding.namespace ?? 'default', generateName: `${regarding.name}-` },
      eventTime: new Date(now).toISOString().replace(/Z$/, '000Z'),
      reportingController: CONTROLLER,
      reportingInstance: this.#instance.slice(0, 128),
      action: reason,
      ...{ regarding, type, reason, note: note.slice(0, MAX_NOTE) },
    })
  }
}
