/** Results of simulations. */
import type { FastifyReply } from 'fastify'
import type { Static } from 'typebox'
import type { Debrief, SimulationKind, SimulationRecord, SweptRunKey } from '../../ports/simulation.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, invalidField } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { presentDebrief } from './present-exercise.ts'
import { presentRunResidency, presentRunSeries } from './present-run.ts'
import { preferredFormat, REPORT_TYPES, type ReportFormat } from './report-format.ts'
import {
  ReportQuerySchema,
  RunResidencySchema,
  SimulationPathSchema,
  SimulationReportSchema,
  SimulationSeriesSchema,
  SweptRunQuerySchema,
} from './schema.ts'
import { noSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const getReport = operation(
  {
    operationId: 'getSimulationReport',
    role: 'viewer',
    answerHeaders: ['Vary', 'Content-Disposition'],
    summary: 'Report of a simulation',
    description: 'For a sweep: JSON, CSV (one row per run), or a self-contained HTML page.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    querystring: ReportQuerySchema,
    response: { 200: SimulationReportSchema },
  },
  ['not_found', 'conflict', 'too_many_simulations', 'store_failed'],
)

const getSeries = operation(
  {
    operationId: 'getSimulationSeries',
    role: 'viewer',
    summary: 'Metrics of a simulation over time',
    description:
      'For a run, or for one run of a sweep, identified by percentage, seed and other swept fields; for ' +
      'a sweep in at most 128 intervals. A large sweep stores this data only for its first runs.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    querystring: SweptRunQuerySchema,
    response: { 200: SimulationSeriesSchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const getResidency = operation(
  {
    operationId: 'getSimulationResidency',
    role: 'viewer',
    summary: 'GPU occupancy by task over time',
    description:
      'For a run, or for one run of a sweep, identified by percentage, seed and other swept fields. A ' +
      'large sweep stores this data only for its first runs.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    querystring: SweptRunQuerySchema,
    response: { 200: RunResidencySchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** GET /simulations/{simulation_id}/report, /series and /residency. */
export function simulationResultRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const simulator = () => simulatorOf(simulation)

  app.get(
    '/simulations/:simulation_id/report',
    { schema: getReport },
    async ({ params: { simulation_id: id }, query, headers }, reply) => {
      const record = simulator().get(id)
      if (record === undefined) throw noSimulation(id)
      if (record.kind === 'sweep')
        return sweepReport(record, query.format ?? preferredFormat(headers.accept), reply)
      if (query.format !== undefined && query.format !== 'json')
        throw invalidField('/format', `the format must be json for a ${record.kind}`)
      const report = await simulator().report(id)
      if (report === null) throw nothingYet(id, 'result')
      // The report of a session is the debrief of an exercise.
      return record.kind === 'session' ? presentDebrief(report as Debrief) : report
    },
  )

  /** Sends the same bytes as the command line writes. */
  async function sweepReport(
    { id, scenario }: SimulationRecord,
    format: ReportFormat,
    reply: FastifyReply,
  ): Promise<never> {
    const text =
      format === 'json' ? await simulator().sweepReport(id) : valueOf(await simulator().sweepFile(id, format))
    if (text === null) throw nothingYet(id, 'result')
    reply.type(REPORT_TYPES[format]).header('vary', 'accept')
    if (format !== 'json') reply.header('content-disposition', `attachment; filename="${scenario}.${format}"`)
    return text as never
  }

  app.get('/simulations/:simulation_id/series', { schema: getSeries }, async ({ params, query }) => {
    const record = simulator().get(params.simulation_id)
    if (record === undefined) throw noSimulation(params.simulation_id)
    const series = await simulator().series(record.id, sweptRunOf(record.kind, query))
    if (series === null) throw nothingYet(record.id, 'series')
    return presentRunSeries(series)
  })

  app.get('/simulations/:simulation_id/residency', { schema: getResidency }, async ({ params, query }) => {
    const record = simulator().get(params.simulation_id)
    if (record === undefined) throw noSimulation(params.simulation_id)
    const residency = await simulator().residency(record.id, sweptRunOf(record.kind, query))
    if (residency === null) throw nothingYet(record.id, 'residency record')
    return presentRunResidency(residency)
  })

  function nothingYet(id: string, what: string): ApiProblem {
    const record = simulator().get(id)
    if (record === undefined) return noSimulation(id)
    return new ApiProblem('conflict', `The simulation is ${record.state} and has no ${what}.`)
  }
}

/** @throws ApiProblem if the run of a sweep is not identified, or the run of another simulation is. */
function sweptRunOf(kind: SimulationKind, query: Static<typeof SweptRunQuerySchema>): SweptRunKey | null {
  const { overcommit_percent: overcommitPercent, seed, settings = '' } = query
  if (kind !== 'sweep') {
    const [named] = Object.keys(query)
    if (named === undefined) return null
    throw invalidField(`/${named}`, `${named} selects a run of a sweep; omit it for a ${kind}`)
  }
  if (overcommitPercent === undefined)
    throw invalidField(
      '/overcommit_percent',
      'overcommit_percent is required: it selects the run of the sweep',
    )
  if (seed === undefined) throw invalidField('/seed', 'seed is required: it selects the run of the sweep')
  return { overcommitPercent, seed, settings }
}
