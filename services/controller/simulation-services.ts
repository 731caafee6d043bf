/** Simulations separate from the live cluster: requested scenarios, and the twin. */
import type { Controller } from '../../controller/controller.ts'
import { openSimulations } from '../simulations/simulations.ts'
import type { UploadLimits } from '../simulations/library/upload-quota.ts'
import { createTwin } from '../twin/twin.ts'

export interface SimulationServicesOptions {
  readonly controller: Pick<Controller, 'views' | 'events'>
  readonly dataDir: string
  readonly uploads: UploadLimits
  readonly log: (line: string) => void
}

/** Both run in their own processes, which end with `close`. */
export async function openSimulationServices({
  controller,
  dataDir,
  uploads,
  log,
}: SimulationServicesOptions) {
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
