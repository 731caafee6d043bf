/** Entity tags for settings: `If-Match` is honoured and never required, so that two people do not overwrite each other unseen. */
import type { Config } from '../domain/config.ts'
import type { Node } from '../domain/node.ts'
import { ApiProblem } from './errors.ts'

/** Revision 0 comes from the environment and may differ after a restart, so the value stands in the tag too. */
export function configEtag(config: Config): string {
  return config.revision === 0 ? `"0-${config.fields.default_vram_overcommit_percent}"` : `"${config.revision}"`
}

/** Of a node's settings, not of its figures: `"20-default"`. */
export function nodeConfigEtag(node: Node): string {
  return `"${node.overcommitOverride ?? 'default'}-${node.reserveOverrideMib ?? 'default'}"`
}

/**
 * Compares strongly, as RFC 9110 13.1.1 has it: a weak tag never matches.
 * @throws ApiProblem precondition_failed when the header is there and names another state.
 */
export function requireMatch(ifMatch: string | undefined, current: string): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return
  if (ifMatch.split(',').some((tag) => tag.trim() === current)) return
  throw new ApiProblem('precondition_failed', `If-Match names another state; the current one is ${current}.`, {
    headers: { etag: current },
  })
}
