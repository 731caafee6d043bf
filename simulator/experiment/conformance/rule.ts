/** A rule of docs/protocol.md that is observable from outside. */
import type { Feature } from '../../../protocol/units.ts'
import type { Examiner } from './examiner.ts'

/** Null: kept. Otherwise the observation. `not_tested`: the rule does not apply to this server. */
export type Finding = null | string | { readonly notTested: string }

export interface Rule {
  /** Rule numbers of docs/protocol.md. */
  readonly rule: string
  readonly claim: string
  /** Examined only at servers that report this feature. Absent: at all. */
  readonly feature?: Feature
  readonly examine: (e: Examiner) => Promise<Finding>
}
