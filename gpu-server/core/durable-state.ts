/** What this server knows across restarts, and whether it is durable: boot, highest epoch, attempts seen, outbox (R1, R3, R6). */
import type { Boot, FinishedEvent } from '../../protocol/messages.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import { Outbox } from './outbox.ts'
import { SeenAttempts } from './seen-attempts.ts'
import type { NodeStorage } from './storage.ts'

export class DurableState {
  readonly outbox: Outbox
  readonly #storage: NodeStorage
  readonly #random: RandomStream
  readonly #seen: SeenAttempts
  #boot: Boot
  /** What the boot will be once it is durable; else the same. */
  #nextBoot: Boot
  #highestEpoch: number
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
    this.#seen = new SeenAttempts(kept.attempts, kept.burned)
    this.outbox = new Outbox(kept.outbox.filter((event): event is FinishedEvent => event.kind === 'finished'))
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

  isOfOldController(epoch: number): boolean {
    return epoch < this.#highestEpoch
  }

  /** May what a controller of this epoch says be acted upon? Not when a later one has been heard, nor before its epoch is durable. */
  accepts(epoch: number): boolean {
    if (epoch < this.#highestEpoch) return false
    if (epoch > this.#highestEpoch) {
      this.#highestEpoch = epoch
      this.#isDirty = true
    }
    return this.#durableEpoch === epoch || this.persist()
  }

  /** The attempt is about to start. Says whether that is durable; if not it must not start, and is burned in memory. */
  markSeen(taskId: string, attempt: number): boolean {
    this.#seen.add(taskId, attempt)
    this.#isDirty = true
    if (this.persist()) return true
    this.#seen.burn(taskId, attempt)
    return false
  }

  /** It never starts here (R3). Says whether that is durable. */
  burn(taskId: string, attempt: number): boolean {
    this.#seen.burn(taskId, attempt)
    this.#isDirty = true
    return this.persist()
  }

  /** An attempt has ended: durable at once if the disk allows it, at the latest before it is sent. */
  addFinished(event: Omit<FinishedEvent, 'n'>): void {
    this.outbox.add({ n: 0, ...event })
    this.#isDirty = true
    this.persist()
  }

  /** As after a restart, above a counter that the controller knows (R6). In force once it is durable. */
  rebootAbove(counter: number): void {
    this.#nextBoot = { counter: Math.max(counter, this.#boot.counter) + 1, random: bootRandom(this.#random) }
    this.#isDirty = true
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

  #save(): void {
    const { highest, burned } = this.#seen.all()
    this.#storage.save({
      bootCounter: this.#nextBoot.counter,
      highestEpoch: this.#highestEpoch,
      attempts: highest,
      burned,
      outbox: this.outbox.entries(),
    })
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
