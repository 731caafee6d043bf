/**
 * Traces of sweeps on a worker's disk, each fetched once for all runs that read it. The files are numbered
 * here: nothing received over the broker is part of a path. Their total size is bounded; the least recently
 * used traces are removed.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TraceRef } from './sweep-messages.ts'

/** Traces in use are kept beyond this limit. */
const MAX_CACHE_BYTES = 8 * 1024 * 1024 * 1024

interface Kept {
  readonly path: string
  readonly bytes: number
  /** Number of runs that read it. */
  readers: number
}

export interface HeldTrace {
  readonly path: string
  /** The run no longer reads it. */
  readonly release: () => void
}

export class TraceCache {
  readonly #folder: string
  readonly #maxBytes: number
  /** Least recently used first. */
  readonly #kept = new Map<string, Kept>()
  #nextNumber = 1
  /** One is fetched at a time: each is held in memory while it is fetched. */
  #fetching: Promise<unknown> = Promise.resolve()

  constructor(folder: string, maxBytes = MAX_CACHE_BYTES) {
    this.#folder = folder
    this.#maxBytes = maxBytes
    mkdirSync(folder, { recursive: true })
  }

  /**
   * @param ref checked (sweep-messages.ts)
   * @param fetch returns its content, checked against its hash
   */
  hold(ref: TraceRef, fetch: () => Promise<Uint8Array>): Promise<HeldTrace> {
    const held = this.#fetching.then(() => this.#take(ref, fetch))
    this.#fetching = held.catch(() => undefined)
    return held
  }

  async #take(ref: TraceRef, fetch: () => Promise<Uint8Array>): Promise<HeldTrace> {
    const key = `${ref.sha256}${ref.suffix}`
    const kept = this.#kept.get(key) ?? this.#keep(ref, await fetch())
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    kept.readers += 1
    this.#makeRoom()
    return {
      path: kept.path,
      release: () => {
        kept.readers -= 1
        this.#makeRoom()
      },
    }
  }

  #keep({ suffix }: TraceRef, content: Uint8Array): Kept {
    const path = join(this.#folder, `${this.#nextNumber++}.trace.jsonl${suffix === '.gz' ? '.gz' : ''}`)
    writeFileSync(path, content, { flag: 'wx', mode: 0o600 })
    return { path, bytes: content.length, readers: 0 }
  }

  #makeRoom(): void {
    let bytes = 0
    for (const each of this.#kept.values()) bytes += each.bytes
    for (const [key, each] of this.#kept) {
      if (bytes <= this.#maxBytes) return
      if (each.readers > 0) continue
      this.#kept.delete(key)
      rmSync(each.path, { force: true })
      bytes -= each.bytes
    }
  }
}
