/** Keeps one connection, reconnecting forever, and reports when it is up and when it is lost. */
import { AuthorizationError } from '@nats-io/transport-node'
import type { ConnectionOptions, NatsConnectionImpl } from '@nats-io/transport-node'
import type { DurationMs } from '../../../protocol/units.ts'
import { dial } from './transport.ts'

/**
 * Delay between two attempts: the base, plus up to as much again at random, so that a fleet does not
 * reconnect in one instant.
 */
const RETRY_BASE_MS: DurationMs = 250
const RETRY_JITTER_MS: DurationMs = 250
/** A broker that refuses the login is retried with growing delays, up to this. */
const RETRY_REFUSED_MAX_MS: DurationMs = 5_000

export interface ConnectionListeners {
  /** Resolves when the connection is set up; a fault ends the connection. */
  readonly onUp: (connection: NatsConnectionImpl) => Promise<void>
  /** One line. Called once for each connection that was up, and for attempts that fail in a new way. */
  readonly onDown: (why: string) => void
}

export class ConnectionLoop {
  readonly #options: ConnectionOptions
  readonly #on: ConnectionListeners
  #current: NatsConnectionImpl | null = null
  #isClosed = false
  #refusals = 0
  #told: string | null = null
  #wake: () => void = () => {}

  constructor(options: ConnectionOptions, listeners: ConnectionListeners) {
    this.#options = options
    this.#on = listeners
  }

  async run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#connectOnce()
      if (!this.#isClosed) await this.#pause()
    }
  }

  /** Closes the connection for good. An attempt in progress is abandoned. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#wake()
    await this.#current?.close()
  }

  async #connectOnce(): Promise<void> {
    let connection: NatsConnectionImpl
    try {
      connection = await dial(this.#options)
    } catch (error) {
      this.#refusals = error instanceof AuthorizationError ? this.#refusals + 1 : 0
      this.#tell(`cannot connect: ${reasonOf(error)}`)
      return
    }
    if (this.#isClosed) return connection.close()
    this.#current = connection
    this.#refusals = 0
    const lost = connection.closed()
    try {
      await this.#on.onUp(connection)
      this.#told = null
    } catch {
      await connection.close()
    }
    const why = await lost
    this.#current = null
    if (!this.#isClosed)
      this.#tell(why instanceof Error ? `connection lost: ${reasonOf(why)}` : 'connection lost')
  }

  #tell(why: string): void {
    if (this.#isClosed || why === this.#told) return
    this.#told = why
    this.#on.onDown(why)
  }

  #pause(): Promise<void> {
    const base = Math.min(RETRY_BASE_MS * 2 ** Math.min(this.#refusals, 10), RETRY_REFUSED_MAX_MS)
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, base + Math.random() * RETRY_JITTER_MS)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { cause } = error
  const inner =
    cause instanceof Error && cause.message !== '' && cause.message !== error.message
      ? ` (${cause.message})`
      : ''
  return `${error.message}${inner}`.replaceAll(/\s+/g, ' ')
}
