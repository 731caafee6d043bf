/** What simulates beside the live cluster: scenarios that are asked for, and the twin. */
import type { Controller } from '../../controller/controller.ts'
import { openSimulations } from '../simulations/simulations.ts'
import { createTwin } from '../twin/twin.ts'

export interface BesideOptions {
  readonly controller: Pick<Controller, 'views' | 'events'>
  readonly dataDir: string
  readonly log: (line: string) => void
}

/** Both in processes of their own, which end with `close`. */
export async function openBeside({ controller, dataDir, log }: BesideOptions) {
  const simulation = await openSimulations({ dataDir, log })
  const twin = createTwin({ views: controller.views, events: controller.events, log })
  return {
    simulation,
    twin,
    async close(): Promise<void> {
      await twin.close()
      await simulation.close()
    },
  }
}
