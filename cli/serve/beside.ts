/** What simulates beside the live cluster: scenarios that are asked for, and the twin. */
import type { Controller } from '../../controller/controller.ts'
import { openSimulations } from '../simulations/simulations.ts'
import type { UploadLimits } from '../simulations/uploads-room.ts'
import { createTwin } from '../twin/twin.ts'

export interface BesideOptions {
  readonly controller: Pick<Controller, 'views' | 'events'>
  readonly dataDir: string
  readonly uploads: UploadLimits
  readonly log: (line: string) => void
}

/** Both in processes of their own, which end with `close`. */
export async function openBeside({ controller, dataDir, uploads, log }: BesideOptions) {
  const simulation = await openSimulations({ dataDir, uploads, log })
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
