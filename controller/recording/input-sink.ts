import type { Instant } from '../../protocol/units.ts'
import type { InputEntry } from '../ports/recording-log.ts'
import type { Batch } from '../ports/store.ts'

/** An input without its instant and the numbers drawn while it is applied. */
export type Input = InputEntry extends infer E
  ? E extends InputEntry
    ? Omit<E, 'at' | 'draws'>
    : never
  : never

/** Receives the inputs of a controller's ports and commands. */
export interface InputSink {
  /** Returns the instant of the input being applied; between inputs, the clock's. */
  now(): Instant
  drew(stream: string, value: number): void
  committed(batch: Batch, isDurable: boolean): void
  /** Records the input and applies it. */
  take(input: Input, act: () => void): void
}
