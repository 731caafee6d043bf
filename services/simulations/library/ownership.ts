/** Only the owner and operators may replace or delete a scenario or a trace. */
import type { Uploader } from '../../../controller/ports/simulation.ts'

/**
 * @param what its name, as the beginning of a sentence
 * @returns null: the user may change it
 */
export function whyNotTheirs(what: string, owner: string | null, by: Uploader): string | null {
  if (by.mayChangeOthers || (owner !== null && owner === by.name)) return null
  return `${what} belongs to ${owner ?? 'an unknown owner'}. Choose another name, or ask an operator.`
}
