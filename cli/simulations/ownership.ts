/** Who may replace or delete a scenario or a trace: its owner, and operators. */
import type { Uploader } from '../../controller/ports/simulation.ts'

/** @param what it is called, at the beginning of a sentence @returns null: they may */
export function whyNotTheirs(what: string, owner: string | null, by: Uploader): string | null {
  if (by.mayChangeOthers || (owner !== null && owner === by.name)) return null
  return `${what} belongs to ${owner ?? 'an owner who is not known'}. Choose another name, or ask an operator.`
}
