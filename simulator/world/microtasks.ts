/** Promises that are created or kept within one step of the clock. They run before time advances. */
export class Microtasks {
  #isPending = false

  get isPending(): boolean {
    return this.#isPending
  }

  readonly expect = (): void => {
    this.#isPending = true
  }

  async settle(): Promise<void> {
    while (this.#isPending) {
      this.#isPending = false
      for (let i = 0; i < MOST_IN_A_ROW; i++) await Promise.resolve()
    }
  }
}

/** Promises of one step that follow from each other. */
const MOST_IN_A_ROW = 24
