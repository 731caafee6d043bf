/**
 * Conditions of a node that an operator should know about: it does not answer, takes no task, or exceeds its
 * limits.
 */
import type { Mib } from '../../protocol/units.ts'
import type { Gpu, Node } from './placement.ts'

/** `silent`: suspect or unreachable. `quarantined`: attempts run there that the store does not know. */
export const NODE_CONDITIONS = [
  'silent',
  'cordoned',
  'auto_cordoned',
  'draining',
  'reserve_breached',
  'over_limit',
  'quarantined',
] as const
export type NodeCondition = (typeof NODE_CONDITIONS)[number]

const HOLDS: Readonly<Record<NodeCondition, (node: Node) => boolean>> = {
  silent: ({ status }) => status !== 'up',
  cordoned: ({ isCordoned }) => isCordoned,
  auto_cordoned: ({ autoCordon }) => autoCordon !== null,
  draining: ({ drain }) => drain !== null,
  reserve_breached: ({ gpus }) => gpus.some((gpu) => reserveDeficit(gpu) > 0),
  over_limit: ({ gpus }) => gpus.some((gpu) => overCommitted(gpu) > 0),
  quarantined: ({ quarantine }) => quarantine.length > 0,
}

export function hasCondition(node: Node, condition: NodeCondition): boolean {
  return HOLDS[condition](node)
}

/** Returns true if at least one condition holds. */
export function needsAttention(node: Node): boolean {
  return NODE_CONDITIONS.some((condition) => HOLDS[condition](node))
}

/** Numbers of nodes; a node may have several conditions. */
export type NodeConditionCounts = Readonly<Record<NodeCondition | 'attention', number>>

/** Scans all GPUs. */
export function countConditions(nodes: Iterable<Node>): NodeConditionCounts {
  const counts = {
    attention: 0,
    silent: 0,
    cordoned: 0,
    auto_cordoned: 0,
    draining: 0,
    reserve_breached: 0,
    over_limit: 0,
    quarantined: 0,
  }
  for (const node of nodes) {
    const held = NODE_CONDITIONS.filter((condition) => HOLDS[condition](node))
    for (const condition of held) counts[condition] += 1
    if (held.length > 0) counts.attention += 1
  }
  return counts
}

/** VRAM committed beyond the commit limit. */
export function overCommitted(gpu: Gpu): Mib {
  return Math.max(0, gpu.noswapMib + gpu.swappableMib - gpu.limitMib)
}

/** Resident VRAM beyond what the reserve and foreign memory leave. */
export function reserveDeficit(gpu: Gpu): Mib {
  return Math.max(0, gpu.noswapResidentMib + gpu.swappableResidentMib - gpu.capacityMib)
}
