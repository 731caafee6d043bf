/** One at a time for each key; whoever asked first goes first. */
export class Turns<K> {
  readonly #last = new Map<K, Promise<void>>()

  /** Does the work once all that was asked before for any of the keys has ended, however it ended. */
  take<T>(keys: readonly K[], work: () => Promise<T>): Promise<T> {
    const result = Promise.all(keys.map((key) => this.#last.get(key) ?? Promise.resolve())).then(work)
    const ended: Promise<void> = result.then(ignore, ignore).then(() => {
      for (const key of keys) if (this.#last.get(key) === ended) this.#last.delete(key)
    })
    for (const key of keys) this.#last.set(key, ended)
    return result
  }
}

function ignore(): void {}
