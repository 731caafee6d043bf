import { type Clock, timePasses } from '../../controller/ports/clock.ts'
import type { AgentLinks } from '../../operator/placing/agent-links.ts'
import { hadAgent } from '../../operator/placing/node-status.ts'
import type { ClusterObjects } from './cluster-objects.ts'

/** Agents report each second. */
const AGENTS_WITHIN_MS = 3_000
const AGENTS_LOOK_MS = 50

interface Known {
  readonly objects: Pick<ClusterObjects, 'gpuNodeNames' | 'gpuNode' | 'node'>
  readonly agents: AgentLinks
}

/** A term begins with what the agents know. One that stays silent is not waited for. */
export async function agentsHeard({ objects, agents }: Known, clock: Clock): Promise<void> {
  const silent = (): boolean =>
    objects.gpuNodeNames().some((name) => {
      const isAway = hadAgent(objects.gpuNode(name)) && !agents.of(name).isHeard
      return isAway && objects.node(name) !== null
    })
  for (let waited = 0; silent() && waited < AGENTS_WITHIN_MS; waited += AGENTS_LOOK_MS)
    await timePasses(clock, AGENTS_LOOK_MS)
}
