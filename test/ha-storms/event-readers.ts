/** Follows the events at several addresses: no reader may see an ID with another content. */
import { createHash } from 'node:crypto'
import { createClient } from '../../clients/typescript/client.ts'

export class EventReaders {
  readonly violations: string[] = []
  readonly #contents = new Map<number, string>()
  readonly #ends = new AbortController()
  readonly #lastSeqs: number[] = []
  readonly #readers: readonly Promise<void>[]

  constructor(roots: readonly string[]) {
    this.#readers = roots.map((root, i) => this.#follow(root, i))
  }

  /** Of the reader that is behind the others. */
  get lastSeq(): number {
    return Math.min(...this.#lastSeqs)
  }

  async end(): Promise<void> {
    this.#ends.abort()
    await Promise.all(this.#readers)
  }

  async #follow(root: string, i: number): Promise<void> {
    const { signal } = this.#ends
    this.#lastSeqs[i] = 0
    try {
      for await (const event of createClient({ url: root, token: null }).events.follow({
        after: 0,
        signal,
      })) {
        const last: number = this.#lastSeqs[i] ?? 0
        if (event.seq !== last + 1) this.violations.push(`event ${event.seq} came after ${last} at ${root}`)
        this.#lastSeqs[i] = event.seq
        this.#compare(event.seq, JSON.stringify(event), root)
      }
    } catch (error) {
      if (!signal.aborted) this.violations.push(`the events at ${root} ended: ${String(error)}`)
    }
  }

  #compare(seq: number, text: string, root: string): void {
    const content = createHash('sha256').update(text).digest('base64')
    const known = this.#contents.get(seq)
    if (known !== undefined && known !== content)
      this.violations.push(`event ${seq} has two contents; at ${root}: ${text}`)
    this.#contents.set(seq, content)
  }
}
