import { clear, removeAt } from '../../controller/structures/list-edit.ts'
import type { AttemptEnd } from '../../gpu-server/core/device.ts'
import type { AttemptStart } from '../../gpu-server/core/attempt-start.ts'

interface EndedAttempt {
  readonly start: AttemptStart
  readonly end: AttemptEnd
}

/**
 * How attempts ended on a device, until the server acknowledges; the last one of each task. There is rarely
 * more than one.
 */
export class EndedAttempts {
  readonly #ended: EndedAttempt[] = []

  all(): readonly EndedAttempt[] {
    return this.#ended
  }

  add(start: AttemptStart, end: AttemptEnd): void {
    const at = this.#placeOf(start.taskId)
    this.#ended[at < 0 ? this.#ended.length : at] = { start, end }
  }

  forget(taskId: string, attempt: number): void {
    const at = this.#placeOf(taskId)
    if (this.#ended[at]?.start.attempt === attempt) removeAt(this.#ended, at)
  }

  clear(): void {
    clear(this.#ended)
  }

  #placeOf(taskId: string): number {
    return this.#ended.findIndex(({ start }) => start.taskId === taskId)
  }
}
