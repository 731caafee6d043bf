import type { RefusedDevice } from '../model/store-kind.ts'

/**
 * Messages that passed the codec and that the controller did not accept since its start, by reason. The bus
 * counts what the codec refuses.
 */
export type RefusedReason =
  | 'wrong_sender'
  | 'unknown_node'
  | 'contradictory_boot'
  | 'wrong_subject'
  | 'too_many_requests'
  | 'foreign_files'
  | RefusedDevice

export interface MessageCounts {
  /** Answered with a refusal, and audited. */
  readonly refused: Readonly<Record<RefusedReason, number>>
  /** Late or duplicate snapshots of nodes: without effect. */
  readonly late: number
}

export class MessageTally implements MessageCounts {
  readonly refused: Record<RefusedReason, number> = {
    wrong_sender: 0,
    unknown_node: 0,
    contradictory_boot: 0,
    wrong_subject: 0,
    too_many_requests: 0,
    foreign_files: 0,
    simulated_in_live: 0,
    nvidia_in_trial: 0,
  }
  late = 0
}
