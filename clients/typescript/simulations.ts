/** Simulations separate from the live cluster: runs and sweeps of scenarios (docs/simulations.md). */
import { setTimeout as wait } from 'node:timers/promises'
import type {
  NewSimulationBody,
  NewSweepBody,
  SimulationBody,
  SimulationPage,
} from '../../controller/api/simulations/schema.ts'
import type { SweepReportBody } from '../../controller/api/simulations/sweep-report-schema.ts'
import { pathSegment, type Transport } from './transport.ts'

export interface DryRun {
  /** Return what the request would do, without changing anything. */
  readonly dryRun?: boolean
}

export interface CallOptions {
  readonly signal?: AbortSignal
}

/** Interval of requests while waiting for the end of a simulation. */
const POLL_INTERVAL_MS = 500

export function simulationsOf(transport: Transport) {
  const at = (id: string): string => `/simulations/${pathSegment(id)}`
  const get = (id: string, { signal }: CallOptions = {}) =>
    transport.json<SimulationBody>({ method: 'GET', path: at(id), signal })
  const file =
    (format: 'csv' | 'html') =>
    async (id: string, { signal }: CallOptions = {}) => {
      const response = await transport.open({
        method: 'GET',
        path: `${at(id)}/report`,
        query: { format },
        signal,
      })
      return response.text()
    }
  return {
    /** All simulations, newest first. */
    list: async ({ signal }: CallOptions = {}) =>
      (await transport.json<SimulationPage>({ method: 'GET', path: '/simulations', signal })).items,
    get,
    /** Runs a scenario, given by name, as text, or as an object. */
    run: (request: NewSimulationBody, { signal }: CallOptions = {}) =>
      transport.json<SimulationBody>({ method: 'POST', path: '/simulations', body: request, signal }),
    /** Runs a scenario at several percentages, with several seeds and values of other fields. */
    sweep: (request: NewSweepBody, { signal }: CallOptions = {}) =>
      transport.json<SimulationBody>({ method: 'POST', path: '/simulations/sweep', body: request, signal }),
    /** Resolves once the simulation is done, failed or cancelled. */
    ended: async (id: string, { signal }: CallOptions = {}): Promise<SimulationBody> => {
      for (;;) {
        const simulation = await get(id, signal === undefined ? {} : { signal })
        if (simulation.state !== 'queued' && simulation.state !== 'running') return simulation
        await wait(POLL_INTERVAL_MS, undefined, signal === undefined ? {} : { signal })
      }
    },
    /** The report of a simulation; a SweepReport for a sweep. */
    report: <T extends object = SweepReportBody>(id: string, { signal }: CallOptions = {}) =>
      transport.json<T>({ method: 'GET', path: `${at(id)}/report`, signal }),
    /** For a sweep, one row per run: `runs.csv` of the command line. */
    csv: file('csv'),
    /** For a sweep, a self-contained page: `report.html` of the command line. */
    html: file('html'),
    /** Cancels a running simulation; deletes an ended one. */
    remove: (id: string, { signal }: CallOptions = {}) =>
      transport.json<SimulationBody | null>({ method: 'DELETE', path: at(id), signal }),
  }
}
