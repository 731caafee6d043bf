import type { FinishedEvent } from '../../protocol/messages.ts'
import { SeenAttempts } from './seen-attempts.ts'
import type { AttemptDescription, KeptAttempt, NodeChange, NodeState } from './storage.ts'
import { EMPTY_NODE_STATE } from './storage.ts'

/** Rebuilds a server's state from storage: a saved state, then every later change in order. */
export class ReplayedState {
  #boot: number
  #epoch: number
  #controller: string | null
  #eventSeq: number
  readonly #seen: SeenAttempts
  readonly #living: Map<string, KeptAttempt>
  readonly #described: Map<string, AttemptDescription>
  readonly #finished = new Map<string, FinishedEvent>()

  constructor(from: NodeState = EMPTY_NODE_STATE) {
    this.#boot = from.bootCounter
    this.#epoch = from.highestEpoch
    this.#controller = from.controller ?? null
    this.#eventSeq = from.eventSeq ?? 0
    this.#seen = new SeenAttempts(from.attempts, from.burned)
    this.#living = new Map(from.living)
    this.#described = new Map(from.described)
    for (const event of from.outbox)
      if (event.kind === 'finished') this.#finished.set(keyOf(event.task_id, event.attempt), event)
  }

  apply(change: NodeChange): void {
    switch (change.kind) {
      case 'boot':
        this.#boot = change.counter
        return
      case 'epoch':
        if (change.epoch !== this.#epoch) this.#eventSeq = 0
        this.#epoch = change.epoch
        this.#controller = change.controller ?? null
        return
      case 'mark':
        this.#eventSeq = change.eventSeq
        return
      case 'seen':
        return this.#seen.add(change.taskId, change.attempt)
      case 'burned':
        return this.#seen.burn(change.taskId, change.attempt)
      case 'living':
        this.#living.set(change.attempt.taskId, change.attempt)
        return
      case 'left':
        this.#living.delete(change.taskId)
        this.#described.delete(change.taskId)
        return
      case 'described':
        this.#described.set(change.of.taskId, change.of)
        return
      case 'finished':
        this.#finished.set(keyOf(change.event.task_id, change.event.attempt), change.event)
        return
      case 'acknowledged':
        this.#finished.delete(keyOf(change.taskId, change.attempt))
    }
  }

  /** The live maps. */
  state(): NodeState {
    const { highest, burned } = this.#seen.all()
    return {
      bootCounter: this.#boot,
      highestEpoch: this.#epoch,
      controller: this.#controller,
      eventSeq: this.#eventSeq,
      attempts: highest,
      burned,
      living: this.#living,
      described: this.#described,
      outbox: [...this.#finished.values()],
    }
  }
}

function keyOf(taskId: string, attempt: number): string {
  return `${attempt}/${taskId}`
}
