import type { LiveNode, LivePlacement } from './facts.ts'

/** Each placement once, also on several GPUs. */
export function placementsOn(node: LiveNode): ReadonlySet<LivePlacement> {
  const placements = new Set<LivePlacement>()
  for (const gpu of node.gpus) for (const placement of gpu.placements) placements.add(placement)
  return placements
}
