/**
 * Bytes of a pull, as the engine reports them layer by layer: it names the size of a layer when it begins to
 * download it, so that the total grows. Podman names no sizes.
 */
const MAX_LAYERS = 1_024

interface Layer {
  done: number
  readonly total: number
}

export class PullProgress {
  readonly #layers = new Map<string, Layer>()

  get bytesDone(): number {
    return [...this.#layers.values()].reduce((sum, { done }) => sum + done, 0)
  }

  /** Null: no size is known yet. */
  get bytesTotal(): number | null {
    if (this.#layers.size === 0) return null
    return [...this.#layers.values()].reduce((sum, { total }) => sum + total, 0)
  }

  /** Takes one line of the stream; returns true if the figures may have changed. */
  take(line: Readonly<Record<string, unknown>>): boolean {
    const { id, status } = line
    if (typeof id !== 'string' || typeof status !== 'string') return false
    const known = this.#layers.get(id)
    if (status === 'Downloading') {
      const { current, total } = fieldsOf(line['progressDetail'])
      if (!isSize(current) || !isSize(total) || total === 0) return false
      if (known === undefined && this.#layers.size >= MAX_LAYERS) return false
      this.#layers.set(id, { done: Math.min(current, total), total })
      return true
    }
    if (known === undefined || (status !== 'Download complete' && status !== 'Pull complete')) return false
    known.done = known.total
    return true
  }
}

export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}
