/**
 * The controllers of a recording, one after the other, and their commits. The position may be saved as a
 * checkpoint, and a run may start from one.
 */
import type { ControllerCheckpoint } from '../../../controller/controller.ts'
import {
  CHECKPOINT_FORMAT,
  type Checkpoint,
  type CommitEntry,
  type InputEntry,
  type RecordedEntry,
  type StartEntry,
} from '../../../controller/ports/recording-log.ts'
import type { Batch } from '../../../controller/ports/store.ts'
import { ReplayedController } from './replayed-controller.ts'
import { ReplayDivergence } from './replayed-ports.ts'

/** One input, its recorded consequences, and its consequences here. */
export interface TakenInput {
  readonly input: InputEntry
  readonly recorded: readonly CommitEntry[]
  readonly committed: readonly Batch[]
  /** The controller makes another request than the recorded one: a description. */
  readonly course: string | null
}

export class ReplayedRun {
  /** Null: no controller has loaded its store yet. */
  controller: ReplayedController | null = null
  #start: StartEntry | null = null
  /** Since its start, until it has begun. */
  #sinceStart: InputEntry[] = []
  #hasBegun = false
  #at = 0
  /** Recorded commits of the next input, and the commits made here. */
  #recorded: CommitEntry[] = []
  #committed: Batch[] = []

  /** Null: the entry is not an input. */
  async next(entry: RecordedEntry): Promise<TakenInput | null> {
    if (entry.k === 'commit') this.#recorded.push(entry)
    else if (entry.k === 'start') this.#begin(entry)
    else return this.#take(entry)
    return null
  }

  /** Continues from the checkpoint. */
  async recall(checkpoint: Checkpoint): Promise<void> {
    const { format, start, state, sinceStart, at } = checkpoint
    if (format !== CHECKPOINT_FORMAT) {
      throw new ReplayDivergence(
        `the checkpoint has format ${format}; this version reads ${CHECKPOINT_FORMAT}: the one ` +
          'that wrote it decides it again',
      )
    }
    this.#begin(start)
    for (const input of sinceStart) await this.#take(input)
    if (state !== null) {
      this.controller = ReplayedController.recalled(checkpoint, state as ControllerCheckpoint, this.#onCommit)
      this.#hasBegun = true
    }
    this.#at = at
    this.#recorded = [...checkpoint.pending]
  }

  /** Position between two entries; null before a start. Shares values with the running state. */
  checkpoint(): Checkpoint | null {
    const start = this.#start
    if (start === null) return null
    const head = {
      k: 'checkpoint',
      format: CHECKPOINT_FORMAT,
      at: this.#at,
      start,
      pending: this.#recorded,
    } as const
    if (!this.#hasBegun || this.controller === null)
      return { ...head, state: null, requests: 0, sinceStart: this.#sinceStart }
    return { ...head, ...this.controller.note(), sinceStart: [] }
  }

  #begin(start: StartEntry): void {
    // The last commits belong to an input that was not recorded completely.
    this.#recorded = []
    this.#start = start
    this.#at = start.at
    this.controller = null
    this.#sinceStart = []
    this.#hasBegun = false
  }

  async #take(input: InputEntry): Promise<TakenInput> {
    let course: string | null = null
    try {
      if (input.k === 'loaded' && this.#start !== null)
        this.controller = ReplayedController.started(this.#start, input.state, this.#onCommit)
      if (this.controller === null) throw new ReplayDivergence('no start is recorded before it')
      await this.controller.take(input)
    } catch (error) {
      if (!(error instanceof ReplayDivergence)) throw error
      course = error.message
    }
    const taken = { input, recorded: this.#recorded, committed: this.#committed, course }
    if (!this.#hasBegun) this.#noteStart(input)
    this.#at = input.at
    this.#recorded = []
    this.#committed = []
    return taken
  }

  /** A controller has started once its first commit is durable. */
  #noteStart(input: InputEntry): void {
    this.#hasBegun =
      input.k === 'durable' ? input.n === 1 : input.k === 'loaded' && this.#recorded[0]?.isDurable === true
    if (this.#hasBegun) this.#sinceStart = []
    else this.#sinceStart.push(input)
  }

  readonly #onCommit = (batch: Batch): { readonly isDurable: boolean } => {
    const recorded = this.#recorded[this.#committed.length]
    // The lists of a transaction that was durable at once are emptied afterwards.
    this.#committed.push({ ...batch, events: [...batch.events], decisions: [...batch.decisions] })
    return { isDurable: recorded?.isDurable ?? false }
  }
}
