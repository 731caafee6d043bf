import { KubeError } from '../../operator/ports/kube-api.ts'

/** What has been noted is forgotten beyond this number, and then noted again. */
const MAX_NOTED = 1_000

/** Writes that the API server refuses: each concerns its object alone. It is noted once until it succeeds. */
export class ObjectFaults {
  readonly #onNote: (line: string) => void
  readonly #noted = new Set<string>()

  constructor(onNote: (line: string) => void) {
    this.#onNote = onNote
  }

  /**
   * Resolves with null, or with the refusal. Rejects when the API server does not answer.
   * @param what cannot be written
   */
  async tried(what: string, write: () => Promise<unknown>): Promise<KubeError | null> {
    try {
      await write()
      this.#noted.delete(what)
      return null
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      if (!this.#noted.has(what)) this.#onNote(`${what} cannot be written: ${error.message}`)
      if (this.#noted.size >= MAX_NOTED) this.#noted.clear()
      this.#noted.add(what)
      return error
    }
  }
}
