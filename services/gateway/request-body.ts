/**
 * The body of a request on its way to a task. Its beginning is kept while it is short, so that a task that
 * was not ready can be asked again; more is not read before a task takes it.
 */
import type { Writable } from 'node:stream'
import type { IncomingMessage } from 'node:http'

/** The same as the proxy holds of a connection. */
export const KEPT_BYTES = 64 * 1024

/** The bytes that all requests of an endpoint keep. */
export interface KeptBytes {
  used: number
  readonly max: number
}

export class RequestBody {
  readonly #request: IncomingMessage
  readonly #all: KeptBytes
  #kept: Buffer[] = []
  #keptBytes = 0
  #target: Writable | null = null
  #isComplete = false
  /** Bytes are gone that no task has answered. */
  #isSpent = false

  constructor(request: IncomingMessage, all: KeptBytes) {
    this.#request = request
    this.#all = all
    request.pause()
    request.on('data', (chunk: Buffer) => this.#arrived(chunk))
    request.once('end', () => {
      this.#isComplete = true
      this.#target?.end()
    })
    request.pause()
  }

  /** It can be sent from its beginning. */
  get isWhole(): boolean {
    return !this.#isSpent
  }

  /** Sends what was kept, and then what arrives. */
  sendTo(target: Writable): void {
    this.#target = target
    for (const chunk of this.#kept) target.write(chunk)
    if (this.#isComplete) target.end()
    else if (!target.writableNeedDrain) this.#request.resume()
    target.on('drain', () => {
      if (this.#target === target) this.#request.resume()
    })
  }

  /** Reads no more until it is sent to another task. */
  stop(): void {
    this.#target = null
    this.#request.pause()
  }

  /** The task has answered: nothing is needed again. */
  release(): void {
    this.#all.used -= this.#keptBytes
    this.#keptBytes = 0
    this.#kept = []
    this.#isSpent = true
  }

  #arrived(chunk: Buffer): void {
    this.#keep(chunk)
    if (this.#target?.write(chunk) !== true) this.#request.pause()
  }

  #keep(chunk: Buffer): void {
    if (this.#isSpent) return
    const bytes = this.#keptBytes + chunk.length
    if (bytes > KEPT_BYTES || this.#all.used + chunk.length > this.#all.max) return this.release()
    this.#kept.push(chunk)
    this.#keptBytes = bytes
    this.#all.used += chunk.length
  }
}
