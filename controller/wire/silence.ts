/** Nodes that have not spoken for a while take no new placements. What follows at the end of their lease comes with the live wire. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Engine } from '../engine/engine.ts'
import { setStatus } from '../engine/node-registry.ts'
import type { Clock, TimerRank } from '../ports/clock.ts'
import type { Freshness } from './freshness.ts'

const LOOK_EVERY_MS: DurationMs = 1_000

/** @returns a function that stops watching. */
export function watchSilence(engine: Engine, freshness: Freshness, clock: Clock, rank: TimerRank): () => void {
  let cancel: () => void = () => {}
  const look = () => {
    const now = clock.now()
    let isChanged = false
    for (const node of engine.cluster.nodes.values()) {
      if (node.status !== 'up' || !freshness.isSilent(node.id, now)) continue
      setStatus(engine.cluster, node, 'suspect', now)
      isChanged = true
    }
    if (isChanged) engine.changed()
    cancel = clock.at(now + LOOK_EVERY_MS, look, rank)
  }
  cancel = clock.at(clock.now() + LOOK_EVERY_MS, look, rank)
  return () => cancel()
}
