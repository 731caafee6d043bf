import type { Distribution } from '../scenario/metrics.ts'

/** A growing list of numbers with exact quantiles; 8 bytes per sample. */
export class Samples {
  #values = new Float64Array(1024)
  #count = 0
  #sum = 0

  get count(): number {
    return this.#count
  }

  get sum(): number {
    return this.#sum
  }

  add(value: number): void {
    if (this.#count === this.#values.length) {
      const larger = new Float64Array(this.#values.length * 2)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.#count++] = value
    this.#sum += value
  }

  /**
   * Mean and nearest-rank quantiles (the smallest value that at least p of all do not exceed), each divided
   * by `divisor`; null without samples.
   */
  distribution(divisor: number): Distribution | null {
    if (this.#count === 0) return null
    // eslint-disable-next-line no-restricted-syntax -- numbers have one order
    const sorted = this.#values.slice(0, this.#count).sort()
    const at = (permille: number) =>
      (sorted[Math.max(0, Math.ceil((permille * this.#count) / 1000) - 1)] as number) / divisor
    return { mean: this.#sum / this.#count / divisor, p50: at(500), p95: at(950), p99: at(990) }
  }
}
