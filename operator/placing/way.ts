/** A pod on its way to its node, and how the way ends. */
import type { CancelTimer } from '../../controller/ports/clock.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { Pod } from '../contract/kubernetes.ts'
import type { Bindable } from './binding.ts'

export type Bound = { readonly error: null } | { readonly error: string; readonly refused: StartRefused }

export interface Way extends Bindable {
  readonly done: (bound: Bound) => void
  /** Node that was nominated for the pod before; empty: none. */
  readonly nominatedBefore: string
  /** The scheduler's message about the pod from earlier tries. */
  said: string | null
  cancel: CancelTimer
  /** Null: the scheduler has not asked for the binding yet. */
  binding: Promise<Bound> | null
  /** Its gate is being removed; null: not now. */
  ungating: Promise<void> | null
  /** As the API server answered when the gate was removed. */
  ungated: Pod | null
  /**
   * The claim that was written with that of another pod. Resolves with the pod from before that; null: the
   * claim is not stored.
   */
  ahead: Promise<Pod | null> | null
}
