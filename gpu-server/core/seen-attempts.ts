/**
 * The highest attempt of each task that this server saw, so that an old one never starts again (R3). Bounded
 * (R11).
 */

/**
 * A delayed command expires by the server's clock within seconds; this number of tasks covers far more time.
 */
export const MAX_SEEN_TASKS = 65_536
/**
 * Number of tasks forgotten at once, oldest first: finding the first key of a Map is slow after many
 * deletions.
 */
const FORGOTTEN_TASKS = 8_192

export class SeenAttempts {
  readonly #highest: Map<string, number>
  /** Tasks whose highest attempt was refused or stopped before it started. */
  readonly #burned: Map<string, number>

  constructor(highest: ReadonlyMap<string, number>, burned: ReadonlyMap<string, number>) {
    this.#highest = new Map(highest)
    this.#burned = new Map(burned)
  }

  /** Returns 0 for a task that was never seen. */
  highest(taskId: string): number {
    return this.#highest.get(taskId) ?? 0
  }

  isBurned(taskId: string, attempt: number): boolean {
    return this.#burned.get(taskId) === attempt
  }

  add(taskId: string, attempt: number): void {
    const tasks = this.#highest.size
    this.#highest.set(taskId, attempt)
    if (this.#highest.size === tasks) this.#seenLast(taskId, attempt)
    if (this.#burned.size > 0) this.#burned.delete(taskId)
    if (this.#highest.size > MAX_SEEN_TASKS) this.#forgetOldest()
  }

  burn(taskId: string, attempt: number): void {
    this.add(taskId, attempt)
    this.#burned.set(taskId, attempt)
  }

  /** Returns the live maps, which stay current. */
  all(): { readonly highest: ReadonlyMap<string, number>; readonly burned: ReadonlyMap<string, number> } {
    return { highest: this.#highest, burned: this.#burned }
  }

  /** A known task becomes the youngest again. */
  #seenLast(taskId: string, attempt: number): void {
    this.#highest.delete(taskId)
    this.#highest.set(taskId, attempt)
  }

  #forgetOldest(): void {
    let left = FORGOTTEN_TASKS
    for (const taskId of this.#highest.keys()) {
      this.#highest.delete(taskId)
      this.#burned.delete(taskId)
      left -= 1
      if (left === 0) return
    }
  }
}
