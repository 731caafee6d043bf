/**
 * An input tap sees inputs of the engine that do not arrive through its commands and ports: a recording
 * records them, a replay decides when they happen.
 */
import type { StoredState } from '../ports/store.ts'
import type { AccessTransaction } from './inputs/commands/access-registry.ts'

/** `n` counts the commits of one engine from 1. */
export type StoreAnswer =
  | { readonly k: 'loaded'; readonly state: StoredState }
  | { readonly k: 'durable'; readonly n: number }
  | { readonly k: 'failed'; readonly n: number; readonly message: string }

export interface EngineInputTap {
  /** The store has answered. `act` applies the answer and must run once. */
  storeAnswered(answer: StoreAnswer, act: () => void): void
  /** Wraps the transaction that tokens and audit write to. */
  access(turn: AccessTransaction): AccessTransaction
}

export const NO_TAP: EngineInputTap = { storeAnswered: (_, act) => act(), access: (turn) => turn }
