/**
 * Who watches an engine sees what comes to it other than through its commands and ports: a recording notes
 * it, a repetition decides when.
 */
import type { StoredState } from '../ports/store.ts'
import type { AccessTransaction } from './commands/access-registry.ts'

/** `n` counts the commits of one engine from 1. */
export type StoreAnswer =
  | { readonly k: 'loaded'; readonly state: StoredState }
  | { readonly k: 'durable'; readonly n: number }
  | { readonly k: 'failed'; readonly n: number; readonly message: string }

export interface EngineInputTap {
  /** The store has answered; `act` is what follows from it, to be run once. */
  storeAnswered(answer: StoreAnswer, act: () => void): void
  /** Stands between the book of tokens and audit and the engine's turn. */
  access(turn: AccessTransaction): AccessTransaction
}

export const NO_TAP: EngineInputTap = { storeAnswered: (_, act) => act(), access: (turn) => turn }
