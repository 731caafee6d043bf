/** Simulations in worker threads over a separate folder, and their REST API. */
import type { Access } from '../../controller/api/auth/access.ts'
import { isOver, type SimulationRecord } from '../../controller/ports/simulation.ts'
import { createSimulations, type Simulations } from '../../services/simulations/simulations.ts'
import { DEFAULT_UPLOAD_LIMITS, type UploadLimits } from '../../services/simulations/library/upload-quota.ts'
import { FakeController } from './api-world.ts'
import { apiClient, type ApiClient } from './api-client.ts'
import { afterEachFile } from './endings.ts'
import { FROM_SOURCES_ENV, temporaryFolder } from './headroom-command.ts'

/** Their processes load large packages from a few files, as commands do. */
const ownOptions = process.env['NODE_OPTIONS']
afterEachFile(() => {
  if (ownOptions === undefined) delete process.env['NODE_OPTIONS']
  else process.env['NODE_OPTIONS'] = ownOptions
})

export interface SimulationsWorld {
  readonly simulations: Simulations
  readonly api: ApiClient
  readonly dataDir: string
  /** Resolves with the simulation once it has ended. */
  ended(id: string): Promise<SimulationRecord>
  /** Resolves with the simulation once the condition holds. */
  once(id: string, holds: (record: SimulationRecord) => boolean): Promise<SimulationRecord>
  close(): Promise<void>
}

export async function simulationsWorld(
  dataDir = temporaryFolder(),
  access?: Access,
  uploads: UploadLimits = { ...DEFAULT_UPLOAD_LIMITS, minFreeBytes: 0, minFreePercent: 0 },
): Promise<SimulationsWorld> {
  Object.assign(process.env, FROM_SOURCES_ENV)
  const faults: string[] = []
  const simulations = createSimulations({ dataDir, uploads, log: (line) => faults.push(line) })
  await simulations.open()
  const world = new FakeController()
  const api = await apiClient(world, { simulation: simulations, ...(access === undefined ? {} : { access }) })
  const once = async (
    id: string,
    holds: (record: SimulationRecord) => boolean,
  ): Promise<SimulationRecord> => {
    for (;;) {
      const record = simulations.get(id)
      if (record === undefined) throw new Error(`simulation ${id} is gone`)
      if (holds(record)) return record
      if (isOver(record.state)) throw new Error(`simulation ${id} is ${record.state}: ${record.reason}`)
      await simulations.changed(id, record.revision, 60_000)
    }
  }
  return {
    simulations,
    api,
    dataDir,
    once,
    ended: (id) => once(id, ({ state }) => isOver(state)),
    async close() {
      await simulations.close()
      await api.app.close()
      if (faults.length > 0) throw new Error(faults.join('\n'))
    },
  }
}

/** It runs for minutes unless it is ended. */
export const LONG_SCENARIO = `scenario: long
version: 1
seed: 1
clock: { until: 60d, drain: false }
fleet:
  - { count: 40, name: "n-{i}", gpus: 8, gpu: { model: A100-40, vram_mib: 40960 } }
config: { default_vram_overcommit_percent: 60 }
workload:
  - { generate: poisson, rate_per_hour: 1200, vram_mib: 16000, duration: { exponential: { mean: 30m } },
      activity: serving }
`
