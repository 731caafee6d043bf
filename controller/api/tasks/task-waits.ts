/**
 * Requests that wait for something to become of a task: answered when it has, when their time is over, when
 * their client is gone, or when the server ends.
 */
import type { ServerResponse } from 'node:http'
import type { Event } from '../../model/event.ts'
import type { EventSource } from '../../engine/durable-events.ts'
import { ApiProblem } from '../http/errors.ts'

/** Requests that wait at a time. */
export const MAX_WAITING = 1_024

/** @param text of the form that the schema requires: `500ms` or `30s`, at most `60s` @returns milliseconds */
export function readWait(text: string): number {
  return Number.parseInt(text, 10) * (text.endsWith('ms') ? 1 : 1000)
}

/** Aborts when the client has disconnected, and when it was answered. */
export function whenClosed(response: ServerResponse): AbortSignal {
  const closed = new AbortController()
  response.once('close', () => closed.abort())
  return closed.signal
}

export interface Waiting {
  readonly taskId: string
  /** The condition is met. */
  readonly isOver: () => boolean
  readonly ms: number
  /** Its client has gone. */
  readonly signal: AbortSignal
}

export class TaskWaits {
  readonly #source: EventSource
  /** Functions that check the condition again, by task. */
  readonly #looks = new Map<string, Set<() => void>>()
  readonly #ends = new Set<() => void>()
  #unsubscribe: (() => void) | null = null
  #isClosed = false

  constructor(source: EventSource) {
    this.#source = source
  }

  get waiting(): number {
    return this.#ends.size
  }

  /**
   * Resolves when it is over or the time is, whichever comes first; never rejects.
   * @throws ApiProblem when too many wait.
   */
  async wait({ taskId, isOver, ms, signal }: Waiting): Promise<void> {
    if (isOver() || ms === 0 || this.#isClosed || signal.aborted) return
    if (this.#ends.size >= MAX_WAITING) {
      const detail = `Too many requests are waiting (limit: ${MAX_WAITING}). Try again in 5 s.`
      throw new ApiProblem('too_many_streams', detail, { headers: { 'retry-after': '5' } })
    }
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (isOver()) end()
      }
      const end = (): void => {
        clearTimeout(timer)
        signal.removeEventListener('abort', end)
        this.#remove(taskId, look, end)
        resolve()
      }
      const timer = setTimeout(end, ms)
      signal.addEventListener('abort', end, { once: true })
      this.#add(taskId, look, end)
    })
  }

  /** Answers all waiting requests; later ones are answered at once. */
  close(): void {
    this.#isClosed = true
    for (const end of [...this.#ends]) end()
  }

  #add(taskId: string, look: () => void, end: () => void): void {
    const looks = this.#looks.get(taskId) ?? new Set()
    this.#looks.set(taskId, looks.add(look))
    this.#ends.add(end)
    this.#unsubscribe ??= this.#source.subscribe((events) => this.#hear(events))
  }

  #remove(taskId: string, look: () => void, end: () => void): void {
    const looks = this.#looks.get(taskId)
    looks?.delete(look)
    if (looks?.size === 0) this.#looks.delete(taskId)
    this.#ends.delete(end)
    if (this.#ends.size > 0) return
    this.#unsubscribe?.()
    this.#unsubscribe = null
  }

  #hear(events: readonly Event[]): void {
    for (const { taskId } of events) {
      if (taskId === null) continue
      for (const look of [...(this.#looks.get(taskId) ?? [])]) look()
    }
  }
}
