import type { Instant } from '../../protocol/units.ts'
import type { InputEntry } from '../ports/recording-log.ts'
import type { Batch } from '../ports/store.ts'

/** An input, without the instant and the numbers that are drawn while it is taken. */
export type Input = InputEntry extends infer E
  ? E extends InputEntry
    ? Omit<E, 'at' | 'draws'>
    : never
  : never

/** Takes what enters a controller through its ports and commands. */
export interface InputSink {
  /** Returns the instant of the input that is being taken; between inputs the clock's. */
  now(): Instant
  drew(stream: string, value: number): void
  committed(batch: Batch, isDurable: boolean): void
  /** Records the input and acts on it. */
  take(input: Input, act: () => void): void
}
