/**
 * A client of a world whose controller may be away: it asks again until it is answered, with the key of its
 * first try.
 */
import type { Controller } from '../../controller/controller.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { SubmissionRefused } from './submission-refused.ts'

type Commands = Controller['commands']

/** Without an answer, or without a controller, it asks again after this. */
const ASK_AGAIN_MS: DurationMs = 1000

export interface RetryingClientOptions {
  readonly clock: Clock
  /** Of the controller that is reached now; null: of none. */
  readonly commands: () => Commands | null
  /** The controller has said that it has the task. */
  readonly onAcknowledged: (taskId: string) => void
}

export class RetryingClient {
  readonly #o: RetryingClientOptions
  /** Requests that are not answered yet. */
  #waiting = 0

  constructor(options: RetryingClientOptions) {
    this.#o = options
  }

  /** Everything that was asked is answered. */
  get isSatisfied(): boolean {
    return this.#waiting === 0
  }

  submit(request: TaskRequest & { readonly id: string }): void {
    const key = { key: request.id, body: '' }
    this.#ask((commands, done) =>
      commands.submitOnce(request, key, (answer) => {
        if (answer.ok) {
          if (done()) this.#o.onAcknowledged(request.id)
        } else if (answer.refusal.code !== 'store_failed')
          throw new SubmissionRefused(request.id, answer.refusal)
      }),
    )
  }

  /** A task that is over by now is left alone. */
  cancel(taskId: string): void {
    this.#ask((commands, done) =>
      commands.cancelTask(taskId, 'its owner', (answer) => {
        if (answer.ok || answer.refusal.code !== 'store_failed') done()
      }),
    )
  }

  /** @param ask says by `done` that it needs not be asked again; that is true the first time */
  #ask(ask: (commands: Commands, done: () => boolean) => void): void {
    const { clock } = this.#o
    let isDone = false
    const done = (): boolean => {
      if (isDone) return false
      isDone = true
      this.#waiting -= 1
      return true
    }
    const attempt = (): void => {
      if (isDone) return
      const commands = this.#o.commands()
      if (commands !== null) ask(commands, done)
      clock.at(clock.now() + ASK_AGAIN_MS, attempt, RANK_ARRIVAL)
    }
    this.#waiting += 1
    attempt()
  }
}
