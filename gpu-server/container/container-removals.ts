/** Removes containers, and tries again later what cannot be removed now. */
import { errorText } from '../../protocol/error-text.ts'

export interface RemovalsOptions {
  /** Rejects when the container cannot be removed now; resolves also if it does not exist. */
  readonly remove: (name: string) => Promise<void>
  /** The containers of this server. */
  readonly names: () => Promise<readonly string[]>
  readonly onNote: (line: string) => void
}

const AGAIN_MS = 10_000

export class ContainerRemovals {
  readonly #options: RemovalsOptions
  #isNeeded: (name: string) => boolean = () => true
  #timer: NodeJS.Timeout | null = null
  #isClosed = false

  constructor(options: RemovalsOptions) {
    this.#options = options
  }

  async remove(name: string): Promise<void> {
    await this.#options.remove(name).catch((error: unknown) => this.#later(error))
  }

  removeOthers(isNeeded: (name: string) => boolean): void {
    this.#isNeeded = isNeeded
    void this.#removeOthers().catch((error: unknown) => this.#later(error))
  }

  close(): void {
    this.#isClosed = true
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  async #removeOthers(): Promise<void> {
    const names = [...new Set(await this.#options.names())].filter((name) => !this.#isNeeded(name))
    if (!this.#isClosed) await Promise.all(names.map((name) => this.#options.remove(name)))
  }

  #later(error: unknown): void {
    if (this.#isClosed || this.#timer !== null) return
    this.#options.onNote(`a container cannot be removed yet: ${errorText(error)}`)
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.removeOthers(this.#isNeeded)
    }, AGAIN_MS)
    this.#timer.unref()
  }
}
