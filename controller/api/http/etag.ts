/**
 * Entity tags for settings: `If-Match` is honoured and never required, so that two people do not overwrite
 * each other unseen.
 */
import type { Config } from '../../model/config.ts'
import type { Node } from '../../model/placement.ts'

/**
 * Revision 0 comes from the environment and may differ after a restart, so the value stands in the tag too.
 */
export function configEtag(config: Config): string {
  return config.revision === 0
    ? `"0-${config.fields.default_vram_overcommit_percent}"`
    : `"${config.revision}"`
}

/** Of a node's settings, not of its figures: `"20-default"`. */
export function nodeConfigEtag(node: Node): string {
  return `"${node.overcommitOverride ?? 'default'}-${node.reserveOverrideMib ?? 'default'}"`
}
