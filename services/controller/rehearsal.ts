/**
 * A start in memory. A standby makes one while another controller leads: code that has run once starts in a
 * fraction of the time, and a takeover is such a start.
 */
import { randomUUID } from 'node:crypto'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import { createApi } from '../../controller/api/server.ts'
import { createController } from '../../controller/controller.ts'
import { packageVersion } from '../package-info.ts'
import { connectInProcess } from './in-process-bus.ts'

const TASK = { name: 'rehearsal', vram_mib: 1 }

/** Listens nowhere, and leaves nothing behind. */
export async function rehearseStart(): Promise<void> {
  const clock = createSystemClock()
  const bus = connectInProcess(clock).controller
  const ports = { clock, random: createSystemRandom(), bus, store: createMemoryStore() }
  const controller = createController(ports, { leaderId: randomUUID() })
  try {
    await controller.start()
    const { commands, views, events, logs, files, channels, series } = controller
    const parts = { commands, views, events, logs, files, channels, series }
    const app = createApi({ ...parts, version: packageVersion() })
    try {
      await app.inject({ method: 'POST', url: '/api/v1/tasks', payload: TASK })
    } finally {
      await app.close()
    }
  } finally {
    await controller.stop()
    clock.stop()
  }
}
