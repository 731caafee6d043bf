/**
 * Records the inputs of a controller: each with its instant and the random numbers drawn while it is applied.
 * The same inputs in the same order give the same decisions, so time stands still while one is applied.
 */
import type { Instant } from '../../protocol/units.ts'
import type { AccessTransaction } from '../engine/inputs/commands/access-registry.ts'
import type { Commands } from '../model/command.ts'
import type { EngineInputTap, StoreAnswer } from '../engine/input-tap.ts'
import type { Clock } from '../ports/clock.ts'
import type { Draw, RecordingLog, StartEntry } from '../ports/recording-log.ts'
import type { Batch } from '../ports/store.ts'
import type { Input, InputSink } from './input-sink.ts'
import { recordedCommands } from './recorded-commands.ts'
import {
  recordedBus,
  recordedClock,
  recordedRandom,
  recordedStore,
  type RecordablePorts,
} from './recorded-ports.ts'
import { withoutSecrets } from './without-secrets.ts'

/** Sees all inputs of a controller: a recording, or a replay. One for each controller. */
export interface InputTap extends EngineInputTap {
  /** Called once, first. */
  begins(clock: Clock, options: Omit<StartEntry, 'k' | 'at' | 'version'>): void
  ports<P extends RecordablePorts>(ports: P): P
  commands(commands: Commands): Commands
}

export class InputRecorder implements InputTap, InputSink {
  #clock: Clock = NO_TIME_YET
  readonly #log: RecordingLog
  readonly #version: string
  readonly #onNested: () => void
  #takenAt: Instant | null = null
  #draws: Draw[] = []
  #commits = 0

  /**
   * @param onNested called once for each input that arrives while another is applied: a broken invariant that
   * cannot be replayed
   */
  constructor(log: RecordingLog, version: string, onNested: () => void) {
    this.#log = log
    this.#version = version
    this.#onNested = onNested
  }

  begins(clock: Clock, options: Omit<StartEntry, 'k' | 'at' | 'version'>): void {
    this.#clock = clock
    this.#log.append({ k: 'start', at: clock.now(), version: this.#version, ...options })
  }

  ports<P extends RecordablePorts>(ports: P): P {
    return {
      ...ports,
      clock: recordedClock(ports.clock, this),
      random: recordedRandom(ports.random, this),
      bus: recordedBus(ports.bus, this),
      store: recordedStore(ports.store, this),
    }
  }

  commands(commands: Commands): Commands {
    return recordedCommands(commands, this)
  }

  storeAnswered(answer: StoreAnswer, act: () => void): void {
    this.take(answer.k === 'loaded' ? { k: 'loaded', state: withoutSecrets(answer.state) } : answer, act)
  }

  access(turn: AccessTransaction): AccessTransaction {
    return {
      transaction: () => {
        const now = turn.transaction()
        if (now.access === null) this.take({ k: 'access', what: 'touch' }, () => {})
        return now
      },
      whenDurable: (done, failed) =>
        this.take({ k: 'access', what: 'answer' }, () => turn.whenDurable(done, failed)),
      write: () => this.take({ k: 'access', what: 'write' }, () => turn.write()),
      fault: () => turn.fault(),
    }
  }

  /** The instant of the input being applied; between inputs, the clock's. */
  now(): Instant {
    return this.#takenAt ?? this.#clock.now()
  }

  drew(stream: string, value: number): void {
    this.#draws.push([stream, value])
  }

  committed({ events, decisions }: Batch, isDurable: boolean): void {
    this.#commits += 1
    this.#log.append({ k: 'commit', n: this.#commits, isDurable, events, decisions })
  }

  take(input: Input, act: () => void): void {
    if (this.#takenAt !== null) {
      this.#onNested()
      return act()
    }
    const at = this.#clock.now()
    this.#takenAt = at
    try {
      act()
    } finally {
      this.#takenAt = null
      const draws = this.#draws
      if (draws.length > 0) this.#draws = []
      this.#log.append({ ...input, at, ...(draws.length === 0 ? {} : { draws }) })
    }
  }
}

const NO_TIME_YET: Clock = {
  now: () => {
    throw new Error('broken invariant: an input before the controller began')
  },
  at: () => () => {},
  soon: () => {},
}
