/**
 * The client of a world. Where the controller may be down, it repeats a request until it is answered, with
 * the idempotency key of the first try.
 */
import type { Controller } from '../../controller/controller.ts'
import type { Refusal } from '../../controller/model/command.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { SubmissionRefused } from './submission-refused.ts'

type Commands = Controller['commands']

/** Time until an unanswered request is repeated. */
const ASK_AGAIN_MS: DurationMs = 1000

export interface ClientOptions {
  readonly clock: Clock
  /** A controller always answers, so that no request needs a key. */
  readonly isReliable: boolean
  /** Returns the commands of the controller that runs now; null: no controller runs. */
  readonly commands: () => Commands | null
  /** The controller has acknowledged the task. */
  readonly onAcknowledged: (taskId: string) => void
}

export class Client {
  readonly #o: ClientOptions
  /** Number of unanswered requests. */
  #waiting = 0

  constructor(options: ClientOptions) {
    this.#o = options
  }

  /** All requests are answered. */
  get isSatisfied(): boolean {
    return this.#waiting === 0
  }

  submit(request: TaskRequest & { readonly id: string }): void {
    if (this.#o.isReliable) {
      this.#o.commands()?.submitTask(request, (answer) => {
        if (!answer.ok) throw new SubmissionRefused(request.id, answer.refusal)
      })
      return
    }
    const key = { key: request.id, body: '' }
    this.#ask((commands, done) =>
      commands.submitOnce(request, key, (answer) => {
        if (answer.ok) {
          if (done()) this.#o.onAcknowledged(request.id)
        } else if (!isOfStore(answer.refusal)) throw new SubmissionRefused(request.id, answer.refusal)
      }),
    )
  }

  /** A task that has ended stays as it is. */
  cancel(taskId: string): void {
    this.#ask((commands, done) =>
      commands.cancelTask(taskId, 'its owner', (answer) => {
        if (answer.ok || !isOfStore(answer.refusal)) done()
      }),
    )
  }

  /** @param ask calls `done` once answered, which returns true the first time */
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
      if (!isDone) clock.at(clock.now() + ASK_AGAIN_MS, attempt, RANK_ARRIVAL)
    }
    this.#waiting += 1
    attempt()
  }
}

/** The client asks the next controller again. */
function isOfStore({ code }: Refusal): boolean {
  return code === 'store_failed' || code === 'commit_unknown'
}
