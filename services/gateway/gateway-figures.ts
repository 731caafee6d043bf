/** Counters of a gateway, by endpoint. */
import { Counter, Histogram, WAKE_SECONDS } from '../../controller/api/metrics/instruments.ts'
import { gauge, gauges, Metrics } from '../../controller/api/metrics/metrics.ts'
import type { Endpoint } from './endpoint.ts'

/** `full`, `late`: a limit of what is held; `forbidden`: the path or the owner. */
export type Refusal = 'full' | 'late' | 'forbidden' | 'malformed'
/** `unreachable`: no connection; `broken`: it ended without an answer, or within one. */
export type CallError = 'unreachable' | 'broken'

const BY_ENDPOINT = ['owner', 'endpoint'] as const

export class GatewayFigures {
  readonly metrics = new Metrics()
  readonly #requests = new Counter({
    name: 'headroom_gateway_requests_total',
    help: 'Accepted requests, by status class of the response; upgraded: to a WebSocket.',
    labels: [...BY_ENDPOINT, 'answer'],
  })
  readonly #refused = new Counter({
    name: 'headroom_gateway_refused_total',
    help: 'Requests that the gateway refused.',
    labels: [...BY_ENDPOINT, 'reason'],
  })
  readonly #errors = new Counter({
    name: 'headroom_gateway_errors_total',
    help: 'Requests that a task did not answer completely.',
    labels: [...BY_ENDPOINT, 'reason'],
  })
  readonly #strangers = new Counter({
    name: 'headroom_gateway_unauthorized_total',
    help: 'Requests without a valid token, for an unknown host name, or without an endpoint.',
    labels: ['reason'],
  })
  readonly #wake = new Histogram({
    name: 'headroom_gateway_wake_seconds',
    help: 'Time from the arrival of a held request to the header of its response.',
    labels: BY_ENDPOINT,
    bounds: WAKE_SECONDS,
  })

  /** @param heardAt when the controller answered last, by performance.now(); null: never */
  constructor(endpoints: () => Iterable<Endpoint>, heardAt: () => number | null) {
    this.metrics.add(this.#requests, this.#refused, this.#errors, this.#strangers, this.#wake)
    const each = (read: (endpoint: Endpoint) => number) =>
      function* () {
        for (const endpoint of endpoints())
          yield { labels: [endpoint.owner, endpoint.name], value: read(endpoint) }
      }
    const add = (name: string, help: string, read: (endpoint: Endpoint) => number): void =>
      this.metrics.add(gauges(name, help, BY_ENDPOINT, each(read)))
    add('headroom_gateway_open_requests', 'Requests and WebSockets that are open.', ({ calls }) => calls.size)
    add(
      'headroom_gateway_held_requests',
      'Requests that wait for a task to start or to be swapped in.',
      (one) => one.held,
    )
    add('headroom_gateway_replicas', 'Open tasks of the endpoint.', ({ replicas }) => replicas.size)
    this.metrics.add(
      gauge('headroom_gateway_table_age_seconds', 'Since the controller answered last.', () => {
        const at = heardAt()
        return at === null ? null : (performance.now() - at) / 1000
      }),
    )
  }

  answered({ owner, name }: Endpoint, status: number): void {
    const kind = status === 101 ? 'upgraded' : `${Math.floor(status / 100)}xx`
    this.#requests.add(1, owner, name, kind)
  }

  refused({ owner, name }: Endpoint, reason: Refusal): void {
    this.#refused.add(1, owner, name, reason)
  }

  failed({ owner, name }: Endpoint, reason: CallError): void {
    this.#errors.add(1, owner, name, reason)
  }

  stranger(reason: 'host' | 'token' | 'owner' | 'endpoint'): void {
    this.#strangers.add(1, reason)
  }

  woken({ owner, name }: Endpoint, ms: number): void {
    this.#wake.observe(ms / 1000, owner, name)
  }
}
