/**
 * What this server knows across restarts, and whether it is durable: boot, highest epoch, attempts seen and
 * living, outbox (R1, R3, R4, R6).
 */
import type { Boot, Envelope, FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import { empty } from '../../controller/domain/list-edit.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Attempt } from './attempt.ts'
import { keptOf } from './attempt.ts'
import { Outbox } from './outbox.ts'
import { SeenAttempts } from './seen-attempts.ts'
import type { AttemptDescription, KeptAttempt, NodeChange, NodeState, NodeStorage } from './storage.ts'

/** What a message of a controller says of the controller itself. */
export type ControllerMark = Pick<Envelope, 'epoch' | 'controller' | 'event_seq'>

export class DurableState {
  readonly outbox: Outbox
  readonly #storage: NodeStorage
  readonly #random: RandomStream
  readonly #seen: SeenAttempts
  readonly #living: Map<string, KeptAttempt>
  readonly #described: Map<string, AttemptDescription>
  /** What is saved, again and again. */
  readonly #state: { -readonly [K in keyof NodeState]: NodeState[K] }
  /** Since the last save. */
  readonly #changes: NodeChange[] = []
  #boot: Boot
  /** What the boot will be once it is durable; else the same. */
  #nextBoot: Boot
  #highestEpoch: number
  /** Process that had this epoch; null: it did not say. */
  #controller: string | null
  /** Last event that the controller of this epoch had made durable. */
  #eventSeq: number
  #isMarkSaved = true
  #durableEpoch = -1
  #isDirty = true

  /** Throws what the storage throws: without a durable boot counter a server must not speak (R6). */
  constructor(storage: NodeStorage, random: RandomStream) {
    const kept = storage.load()
    this.#storage = storage
    this.#random = random
    this.#boot = { counter: kept.bootCounter + 1, random: bootRandom(random) }
    this.#nextBoot = this.#boot
    this.#highestEpoch = kept.highestEpoch
    this.#controller = kept.controller ?? null
    this.#eventSeq = kept.eventSeq ?? 0
    this.#seen = new SeenAttempts(kept.attempts, kept.burned)
    this.#living = new Map(kept.living)
    this.#described = new Map(kept.described)
    this.outbox = new Outbox(kept.outbox.filter((event): event is FinishedEvent => event.kind === 'finished'))
    const { highest: attempts, burned } = this.#seen.all()
    this.#state = {
      bootCounter: 0,
      highestEpoch: 0,
      controller: null,
      eventSeq: 0,
      attempts,
      burned,
      living: this.#living,
      described: this.#described,
      outbox: this.outbox.entries(),
    }
    this.#changed({ kind: 'boot', counter: this.#boot.counter })
    this.#save()
  }

  /** Durable. */
  get boot(): Boot {
    return this.#boot
  }

  get highestEpoch(): number {
    return this.#highestEpoch
  }

  get seen(): Pick<SeenAttempts, 'highest' | 'isBurned'> {
    return this.#seen
  }

  /** Attempts that live here, by task. */
  get living(): ReadonlyMap<string, KeptAttempt> {
    return this.#living
  }

  /** Process of the controller that had the highest epoch; null: not known. */
  get controller(): string | null {
    return this.#controller
  }

  /** The last event that the controller of the highest epoch had made durable. */
  get eventSeq(): number {
    return this.#eventSeq
  }

  /**
   * A lower epoch than the highest, or the same epoch from another process: two stores of one origin (R3).
   */
  isOfOtherController({ epoch, controller }: ControllerMark): boolean {
    if (epoch !== this.#highestEpoch) return epoch < this.#highestEpoch
    return this.#controller !== null && controller !== this.#controller
  }

  /**
   * May what this controller says be acted upon? Not when a later one has been heard, nor before its epoch is
   * durable.
   */
  accepts(mark: ControllerMark): boolean {
    if (this.isOfOtherController(mark)) return false
    const { epoch, controller = null, event_seq = 0 } = mark
    if (epoch > this.#highestEpoch || controller !== this.#controller) {
      if (epoch > this.#highestEpoch) this.#eventSeq = 0
      this.#highestEpoch = epoch
      this.#controller = controller
      this.#changed({ kind: 'epoch', epoch, controller })
    }
    if (event_seq > this.#eventSeq) {
      // Durable with the next save, which comes before anything that is obeyed.
      this.#eventSeq = event_seq
      this.#isMarkSaved = false
    }
    return this.#durableEpoch === epoch || this.persist()
  }

  /** Null: the start said nothing of it. */
  described(taskId: string, attempt: number): AttemptDescription | null {
    const of = this.#described.get(taskId)
    return of?.attempt === attempt ? of : null
  }

  /**
   * The attempt is about to start. Says whether that is durable; if not it must not start, and is burned in
   * memory.
   */
  addStarting(attempt: Attempt, description: AttemptDescription | null = null): boolean {
    const { taskId } = attempt
    if (description !== null) {
      this.#described.set(taskId, description)
      this.#changed({ kind: 'described', of: description })
    }
    this.#seen.add(taskId, attempt.attempt)
    this.#changed({ kind: 'seen', taskId, attempt: attempt.attempt })
    this.keep(attempt)
    if (this.persist()) return true
    this.#seen.burn(taskId, attempt.attempt)
    this.#leave(taskId)
    this.#changed({ kind: 'burned', taskId, attempt: attempt.attempt })
    return false
  }

  /** Something has changed that must be known of it after a restart; durable with the next save. */
  keep(attempt: Attempt): void {
    const kept = keptOf(attempt)
    this.#living.set(attempt.taskId, kept)
    this.#changed({ kind: 'living', attempt: kept })
  }

  /** It never starts here (R3). Says whether that is durable. */
  burn(taskId: string, attempt: number): boolean {
    this.#seen.burn(taskId, attempt)
    this.#changed({ kind: 'burned', taskId, attempt })
    return this.persist()
  }

  /** It was about to be launched when the server died, and was not. */
  burnStarting({ taskId, attempt }: KeptAttempt): void {
    this.#leave(taskId)
    this.burn(taskId, attempt)
  }

  /** A living attempt of which the disk knows nothing was found on the device. */
  addFound({ taskId, attempt }: Attempt): void {
    if (attempt <= this.#seen.highest(taskId)) return
    this.#seen.add(taskId, attempt)
    this.#changed({ kind: 'seen', taskId, attempt })
  }

  /** An attempt has ended. Says whether that is durable, as it is at the latest before it is sent. */
  addFinished(event: Omit<FinishedEvent, 'n'>): boolean {
    const entry = { n: 0, ...event }
    this.#leave(event.task_id)
    this.outbox.add(entry)
    this.#changed({ kind: 'finished', event: entry })
    return this.persist()
  }

  /**
   * Entries up to `n` are durable at the controller; answers what they were. That they are not sent again is
   * durable with the next save.
   */
  acknowledge(n: number): readonly NodeEvent[] {
    const events = this.outbox.acknowledge(n)
    for (const { kind, task_id, attempt } of events) {
      if (kind === 'finished') this.#changes.push({ kind: 'acknowledged', taskId: task_id, attempt })
    }
    return events
  }

  /** As after a restart, above a counter that the controller knows (R6). In force once it is durable. */
  rebootAbove(counter: number): void {
    this.#nextBoot = { counter: Math.max(counter, this.#boot.counter) + 1, random: bootRandom(this.#random) }
    this.#changed({ kind: 'boot', counter: this.#nextBoot.counter })
    this.persist()
  }

  /** Says whether everything is durable now. */
  persist(): boolean {
    if (!this.#isDirty) return true
    try {
      this.#save()
    } catch {
      return false
    }
    return true
  }

  #leave(taskId: string): void {
    this.#described.delete(taskId)
    if (this.#living.delete(taskId)) this.#changed({ kind: 'left', taskId })
  }

  #changed(change: NodeChange): void {
    this.#changes.push(change)
    this.#isDirty = true
  }

  #save(): void {
    this.#state.bootCounter = this.#nextBoot.counter
    this.#state.highestEpoch = this.#highestEpoch
    this.#state.controller = this.#controller
    this.#state.eventSeq = this.#eventSeq
    if (!this.#isMarkSaved) this.#changes.push({ kind: 'mark', eventSeq: this.#eventSeq })
    this.#isMarkSaved = true
    this.#storage.save(this.#state, this.#changes)
    empty(this.#changes)
    this.#isDirty = false
    this.#boot = this.#nextBoot
    this.#durableEpoch = this.#highestEpoch
  }
}

function bootRandom(random: RandomStream): string {
  return Math.floor(random() * 4294967296)
    .toString(16)
    .padStart(8, '0')
}
