/** Runs work one at a time per key, first come first served. */
export class KeyQueue<K> {
  readonly #lastByKey = new Map<K, Promise<void>>()

  /** Runs the work after all earlier work for any of the keys has ended, successfully or not. */
  run<T>(keys: readonly K[], work: () => Promise<T>): Promise<T> {
    const result = Promise.all(keys.map((key) => this.#lastByKey.get(key) ?? Promise.resolve())).then(work)
    const ended: Promise<void> = result.then(ignore, ignore).then(() => {
      for (const key of keys) if (this.#lastByKey.get(key) === ended) this.#lastByKey.delete(key)
    })
    for (const key of keys) this.#lastByKey.set(key, ended)
    return result
  }
}

function ignore(): void {}
