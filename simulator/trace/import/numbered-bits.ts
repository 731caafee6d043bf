const FIRST_BYTES = 1024

/** A set of whole numbers from 0 on, with one bit for each up to the largest. */
export class NumberedBits {
  count = 0
  #bytes = new Uint8Array(FIRST_BYTES)

  add(number: number): void {
    const at = Math.floor(number / 8)
    if (at >= this.#bytes.length) this.#grow(at)
    const bit = 1 << (number % 8)
    if ((this.#bytes[at]! & bit) !== 0) return
    this.#bytes[at]! |= bit
    this.count += 1
  }

  has(number: number): boolean {
    return ((this.#bytes[Math.floor(number / 8)] ?? 0) & (1 << (number % 8))) !== 0
  }

  #grow(at: number): void {
    let length = this.#bytes.length
    while (length <= at) length *= 2
    const bytes = new Uint8Array(length)
    bytes.set(this.#bytes)
    this.#bytes = bytes
  }
}
