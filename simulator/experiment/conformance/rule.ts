/** A rule of docs/protocol.md that can be examined from outside. */
import type { Examiner } from './examiner.ts'

/** Null: kept. Otherwise what was seen instead. `not_tested`: this server gives no occasion. */
export type Finding = null | string | { readonly notTested: string }

export interface Rule {
  /** Of docs/protocol.md. */
  readonly rule: string
  readonly claim: string
  readonly examine: (e: Examiner) => Promise<Finding>
}
