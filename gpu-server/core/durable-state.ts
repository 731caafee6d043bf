/**
 * What this server knows across restarts, and whether it is durable: boot, highest epoch, seen and living
 * attempts, outbox (R1, R3, R4, R6).
 */
import type { Envelope } from '../../protocol/envelope.ts'
import type { Boot } from '../../protocol/message-fields.ts'
import type { FinishedEvent, NodeEvent } from '../../protocol/messages.ts'
import { clear } from '../../controller/structures/list-edit.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import type { Attempt } from './attempt.ts'
import { keptOf } from './attempt.ts'
import { Outbox } from './outbox.ts'
import { SeenAttempts } from './seen-attempts.ts'
import type { AttemptDescription, KeptAttempt, NodeChange, NodeState, NodeStorage } from './storage.ts'

/** The part of a controller's message that identifies the controller. */
export type ControllerMark = Pick<Envelope, 'epoch' | 'controller' | 'event_seq'>

export class DurableState {
  readonly outbox: Outbox
  readonly #storage: NodeStorage
  readonly #random: RandomStream
  readonly #seen: SeenAttempts
  readonly #living: Map<string, KeptAttempt>
  readonly #described: Map<string, AttemptDescription>
  /** The saved state. */
  readonly #state: { -readonly [K in keyof NodeState]: NodeState[K] }
  /** Changes since the last save. */
  readonly #changes: NodeChange[] = []
  #boot: Boot
  /** The boot to be saved next; otherwise equal to the current boot. */
  #nextBoot: Boot
  #highestEpoch: number
  /** The controller process of this epoch; null: not stated. */
  #controller: string | null
  /** The last event that the controller of this epoch had made durable. */
  #eventSeq: number
  #isMarkSaved = true
  #durableEpoch = -1
  #isDirty = true

  /** Throws the storage's error: a server without a durable boot counter must not send (R6). */
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

  /** The durable boot. */
  get boot(): Boot {
    return this.#boot
  }

  get highestEpoch(): number {
    return this.#highestEpoch
  }

  /** The controller process of the highest epoch, as messages of this server carry it; null: not stated. */
  get controller(): string | null {
    return this.#controller
  }

  /** The last event that this controller had made durable. */
  get eventSeq(): number {
    return this.#eventSeq
  }

  get seen(): Pick<SeenAttempts, 'highest' | 'isBurned'> {
    return this.#seen
  }

  /** Attempts that live here, by task. */
  get living(): ReadonlyMap<string, KeptAttempt> {
    return this.#living
  }

  /**
   * True for a lower epoch than the highest, or the same epoch from another process: two stores of one origin
   * (R3).
   */
  isOfOtherController({ epoch, controller }: ControllerMark): boolean {
    if (epoch !== this.#highestEpoch) return epoch < this.#highestEpoch
    return this.#controller !== null && controller !== this.#controller
  }

  /** True for the controller whose orders this server obeys now. */
  isObeyed({ epoch, controller }: ControllerMark): boolean {
    return epoch === this.#highestEpoch && (controller ?? null) === this.#controller
  }

  /**
   * True if the controller that answers has judged the present mark of this server. A new controller that
   * has judged an older one only does not know that its store may lack what this server has heard of since,
   * and with its own mark that would be forgotten here too.
   */
  isJudged(asked: ControllerMark, answer: ControllerMark): boolean {
    const isPresent =
      this.isObeyed(asked) && (this.#controller === null || asked.event_seq === this.#eventSeq)
    return isPresent || this.isObeyed(answer)
  }

  acceptsAnswer(asked: ControllerMark, answer: ControllerMark): boolean {
    return this.isJudged(asked, answer) && this.accepts(answer)
  }

  /**
   * True if orders of this controller may be obeyed: no later controller was seen, and its epoch is durable.
   */
  accepts(mark: ControllerMark): boolean {
    if (this.isOfOtherController(mark)) return false
    const { epoch, controller = null, event_seq = 0 } = mark
    if (!this.isObeyed(mark)) {
      if (epoch > this.#highestEpoch) this.#eventSeq = 0
      this.#highestEpoch = epoch
      this.#controller = controller
      this.#changed({ kind: 'epoch', epoch, controller })
    }
    if (event_seq > this.#eventSeq) {
      // Durable with the next save, which comes before any command is obeyed.
      this.#eventSeq = event_seq
      this.#isMarkSaved = false
    }
    return this.#durableEpoch === epoch || this.persist()
  }

  /** Null: the start carried no description. */
  described(taskId: string, attempt: number): AttemptDescription | null {
    const of = this.#described.get(taskId)
    return of?.attempt === attempt ? of : null
  }

  /**
   * Records that the attempt is about to start. Returns true when durable; if not, the attempt must not start
   * and is burned in memory.
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

  /** Records a change that a restart must preserve; durable with the next save. */
  keep(attempt: Attempt): void {
    const kept = keptOf(attempt)
    this.#living.set(attempt.taskId, kept)
    this.#changed({ kind: 'living', attempt: kept })
  }

  /** Prevents the attempt from ever starting here (R3). Returns true when durable. */
  burn(taskId: string, attempt: number): boolean {
    this.#seen.burn(taskId, attempt)
    this.#changed({ kind: 'burned', taskId, attempt })
    return this.persist()
  }

  /** Burns an attempt that was not launched before the server died. */
  burnStarting({ taskId, attempt }: KeptAttempt): void {
    this.#leave(taskId)
    this.burn(taskId, attempt)
  }

  /** Records a living attempt that was found on the device and is unknown to the disk. */
  addFound({ taskId, attempt }: Attempt): void {
    if (attempt <= this.#seen.highest(taskId)) return
    this.#seen.add(taskId, attempt)
    this.#changed({ kind: 'seen', taskId, attempt })
  }

  /**
   * Records the end of an attempt. Returns true when durable; at the latest it is durable before it is sent.
   */
  addFinished(event: Omit<FinishedEvent, 'n'>): boolean {
    const entry = { n: 0, ...event }
    this.#leave(event.task_id)
    this.outbox.add(entry)
    this.#changed({ kind: 'finished', event: entry })
    return this.persist()
  }

  /**
   * Removes entries up to `n`, which are durable at the controller, and returns them. The removal is durable
   * with the next save.
   */
  acknowledge(n: number): readonly NodeEvent[] {
    const events = this.outbox.acknowledge(n)
    for (const { kind, task_id, attempt } of events) {
      if (kind === 'finished') this.#changes.push({ kind: 'acknowledged', taskId: task_id, attempt })
    }
    return events
  }

  /**
   * Starts a new boot as after a restart, with a counter above the one that the controller knows (R6).
   * Effective once durable.
   */
  rebootAbove(counter: number): void {
    this.#nextBoot = { counter: Math.max(counter, this.#boot.counter) + 1, random: bootRandom(this.#random) }
    this.#changed({ kind: 'boot', counter: this.#nextBoot.counter })
    this.persist()
  }

  /** Saves pending changes. Returns true if everything is durable now. */
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
    clear(this.#changes)
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
