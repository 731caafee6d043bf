/**
 * The store of a world, with the earlier states for faults of the plan. Every controller of the world uses
 * this one store.
 */
import { EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import { epochAfterLoss } from '../../controller/model/epoch-after-loss.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { Random } from '../../controller/ports/random.ts'
import type { FinishedQuery, Store, StoredState, TaskRecord } from '../../controller/ports/store.ts'
import type { Instant } from '../../protocol/units.ts'
import type { Fault } from '../scenario/fault.ts'

export type SetBack = Extract<Fault, { readonly kind: 'store_set_back' }>

/** The store lost a part of its history; its content from now on. */
export interface LostHistory extends Kept {
  readonly fault: SetBack
  /** Earlier silent losses that this one settles: an operator restored a backup, or accepted the loss. */
  readonly settled: readonly SetBack[]
}

/** It remains until an operator settles it. */
export function isSilentLoss(fault: Fault): fault is SetBack {
  return fault.kind === 'store_set_back' && fault.loss === 'silent'
}

/** The content of the store at an instant. */
interface Kept {
  readonly stored: StoredState
  /** Its final tasks, as far as the store keeps them. */
  readonly finished: readonly TaskRecord[]
  readonly asOf: Instant
}

export interface StoreHistoryOptions {
  readonly clock: Clock
  readonly random: Random
  readonly newStore: (initial: StoredState, finished: readonly TaskRecord[]) => Store
  /** The content for the first controller. */
  readonly initial: StoredState | null
  /** A promise was created: its consequences run before the next step of the clock. */
  readonly onPromise: () => void
}

const EVERY_FINISHED: FinishedQuery = {
  states: ['completed', 'failed', 'cancelled', 'lost'],
  ...{ owner: null, nameContains: null, nodeId: null, beforeSeq: null, afterSeq: null },
  isOldestFirst: true,
  limit: Number.MAX_SAFE_INTEGER,
}

export class StoreHistory {
  readonly #o: StoreHistoryOptions
  readonly #start: Kept
  #inner: Store
  /** The store as the current controller read it. */
  #atLoad: Promise<Kept>
  readonly #kept = new Map<SetBack, Promise<Kept>>()
  readonly #listeners: ((lost: LostHistory) => void)[] = []
  /** Silent losses that no operator has settled. */
  readonly unsettled: Set<SetBack> = new Set()

  constructor(options: StoreHistoryOptions) {
    this.#o = options
    this.#start = { stored: options.initial ?? EMPTY_STATE, finished: [], asOf: options.clock.now() }
    this.#atLoad = Promise.resolve(this.#start)
    this.#inner = options.newStore(this.#start.stored, [])
  }

  /** Becomes the world's store when that is set back. */
  get store(): Store {
    const inner = (): Store => this.#inner
    return {
      ...this.#inner,
      load: () => this.#load(),
      commit: (batch) => inner().commit(batch),
      reads: {
        task: (id) => inner().reads.task(id),
        finishedTasks: (query) => inner().reads.finishedTasks(query),
        events: (query) => inner().reads.events(query),
        eventRange: () => inner().reads.eventRange(),
        audits: (query) => inner().reads.audits(query),
        decision: (number) => inner().reads.decision(number),
        decisions: (query) => inner().reads.decisions(query),
        configRevisions: (query) => inner().reads.configRevisions(query),
      },
      close: () => inner().close(),
    }
  }

  /**
   * Keeps the states that these faults go back to, each at its instant. Otherwise a fault can go back to a
   * named state only.
   */
  plan(faults: readonly Fault[], startedAt: Instant): void {
    for (const fault of faults) {
      if (fault.kind !== 'store_set_back' || typeof fault.to === 'string' || fault.to.backMs === 0) continue
      this.#o.clock.at(startedAt + fault.atMs - fault.to.backMs, () => this.#keep(fault), RANK_DEVICE)
    }
  }

  /** Calls when a part of the history is lost, before a controller reads the rest. */
  listen(listener: (lost: LostHistory) => void): void {
    this.#listeners.push(listener)
  }

  /** No controller runs. The store has the earlier state before the next step of the clock. */
  setBack(fault: SetBack): void {
    this.#o.onPromise()
    void Promise.all([this.#inner.load(), this.#stateFor(fault)]).then(([before, kept]) => {
      this.#kept.delete(fault)
      const stored = fault.loss === 'silent' ? kept.stored : this.#afterLoss(before, kept.stored, fault.loss)
      this.#inner = this.#o.newStore(stored, kept.finished)
      this.#lose(fault, { ...kept, stored })
    })
  }

  #lose(fault: SetBack, kept: Kept): void {
    const settled = isSilentLoss(fault) ? [] : [...this.unsettled]
    for (const earlier of settled) this.unsettled.delete(earlier)
    if (isSilentLoss(fault)) this.unsettled.add(fault)
    for (const listener of this.#listeners) listener({ fault, ...kept, settled })
  }

  #keep(fault: SetBack): void {
    this.#o.onPromise()
    this.#kept.set(fault, this.#present())
  }

  #stateFor(fault: SetBack): Promise<Kept> {
    if (fault.to === 'start') return Promise.resolve(this.#start)
    if (fault.to === 'epoch_start') return this.#atLoad
    return this.#kept.get(fault) ?? this.#present()
  }

  #present(): Promise<Kept> {
    return this.#keptWith(this.#inner.load())
  }

  #keptWith(loaded: Promise<StoredState>): Promise<Kept> {
    const asOf = this.#o.clock.now()
    const finished = this.#inner.reads.finishedTasks(EVERY_FINISHED)
    return Promise.all([loaded, finished]).then(([stored, tasks]) => ({ stored, finished: tasks, asOf }))
  }

  /** As `headroom restore` and `--accept-loss` leave a store (controller/adapters/sqlite/recovery.ts). */
  #afterLoss(before: StoredState, target: StoredState, loss: 'accepted' | 'restored'): StoredState {
    const highest = Math.max(before.marks.epoch, target.marks.epoch)
    const epoch = epochAfterLoss(highest, this.#o.clock.now(), (limit) =>
      Math.floor(this.#o.random.stream('faults/set-back')() * limit),
    )
    return {
      ...target,
      marks: { ...target.marks, epoch },
      recovery: {
        reason: loss === 'accepted' ? 'loss_accepted' : 'restored',
        sinceWallMs: this.#o.clock.now(),
      },
    }
  }

  #load(): Promise<StoredState> {
    const loaded = this.#inner.load()
    this.#atLoad = this.#keptWith(loaded)
    return loaded
  }
}
