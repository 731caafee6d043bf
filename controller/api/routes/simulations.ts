/** Simulations: runs of scenarios beside the live cluster, which they never touch. */
import { Type, type Static } from 'typebox'
import type { Debrief, SimulationKind } from '../../ports/simulation.ts'
import { signatureOf, callerOf } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, invalidField } from '../errors.ts'
import { operation } from '../operation.ts'
import { presentDebrief } from '../present/exercise.ts'
import { presentRunResidency, presentRunSeries } from '../present/run.ts'
import { presentSimulation } from '../present/simulation.ts'
import {
  NewSimulationSchema,
  NewSweepSchema,
  ResidencyQuerySchema,
  RunResidencySchema,
  SimulationPageSchema,
  SimulationPathSchema,
  SimulationRef,
  SimulationReportSchema,
  SimulationSeriesSchema,
  SimulationStreamSchema,
} from '../schema/simulation.ts'
import { EventStreams } from '../server-sent-events.ts'
import { followSimulation } from '../simulation-follower.ts'
import {
  choicesOf,
  noSimulation,
  ownSimulation,
  SCENARIO_BODY_LIMIT_BYTES,
  scenarioOf,
  simulatorOf,
  valueOf,
} from '../simulation-request.ts'

const startSimulation = operation(
  {
    operationId: 'startSimulation',
    role: 'submitter',
    summary: 'Run a scenario, or open a session on it',
    description:
      'It is found right at once and runs in its turn, beside the live cluster, of which it knows nothing. A session is open when this is answered.',
    tags: ['simulations'],
    body: NewSimulationSchema,
    response: { 202: SimulationRef },
  },
  ['not_found', 'conflict', 'too_many_simulations'],
)

const startSweep = operation(
  {
    operationId: 'startSweep',
    role: 'submitter',
    summary: 'Run a scenario at several overcommit percentages, and say which to take',
    description: 'At most 2,000 runs. One that is cancelled keeps what was done: its report says of how many.',
    tags: ['simulations'],
    body: NewSweepSchema,
    response: { 202: SimulationRef },
  },
  ['not_found', 'conflict', 'too_many_simulations'],
)

const MAX_RUNS = 2_000

const listSimulations = operation(
  {
    operationId: 'listSimulations',
    role: 'viewer',
    summary: 'All simulations, newest first',
    tags: ['simulations'],
    response: { 200: SimulationPageSchema },
  },
  ['conflict'],
)

const getSimulation = operation(
  {
    operationId: 'getSimulation',
    role: 'viewer',
    summary: 'One simulation',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationRef },
  },
  ['not_found', 'conflict'],
)

const getReport = operation(
  {
    operationId: 'getSimulationReport',
    role: 'viewer',
    summary: 'What came of it',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationReportSchema },
  },
  ['not_found', 'conflict'],
)

const getSeries = operation(
  {
    operationId: 'getSimulationSeries',
    role: 'viewer',
    summary: 'How it went over time',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationSeriesSchema },
  },
  ['not_found', 'conflict'],
)

const getResidency = operation(
  {
    operationId: 'getSimulationResidency',
    role: 'viewer',
    summary: 'Who was on which GPU when',
    description:
      'Of a run, or of one run of a sweep, which is named by its percentage and its seed. Of a large sweep the first runs keep it.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    querystring: ResidencyQuerySchema,
    response: { 200: RunResidencySchema },
  },
  ['not_found', 'conflict'],
)

const streamSimulation = operation(
  {
    operationId: 'streamSimulation',
    role: 'viewer',
    summary: 'How it goes on, as it does',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationStreamSchema },
  },
  ['not_found', 'conflict', 'too_many_streams'],
)

const removeSimulation = operation(
  {
    operationId: 'removeSimulation',
    role: 'submitter',
    summary: 'Cancel one, or delete one that is over',
    description:
      'One that waits or runs ends within 2 s and stays in the list, with what was done (202); one that is over goes with its results (204). One of somebody else takes the role operator.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 202: SimulationRef, 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'conflict'],
)

/** POST and GET /simulations; GET and DELETE /simulations/{simulation_id}; its /report, /series and /events. */
export function simulationRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const streams = new EventStreams()
  const simulator = () => simulatorOf(simulation)

  app.post('/simulations', { schema: startSimulation, bodyLimit: SCENARIO_BODY_LIMIT_BYTES }, async (request, reply) => {
    const { body } = request
    const asked = { scenario: scenarioOf(body), ...choicesOf(body), by: callerOf(request).name }
    const record = valueOf(
      await (body.mode === 'session' ? simulator().openSession({ ...asked, ...paceOf(body) }) : simulator().run(asked)),
    )
    reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
    return presentSimulation(record)
  })

  app.post('/simulations/sweep', { schema: startSweep, bodyLimit: SCENARIO_BODY_LIMIT_BYTES }, async (request, reply) => {
    const { body } = request
    const { overcommit_percents: percentages, seeds = null, objectives = [], until_seconds: untilSeconds } = body
    const runs = percentages.length * (seeds?.length ?? 1)
    if (runs > MAX_RUNS) throw invalidField('/seeds', `overcommit_percents and seeds make ${runs} runs; allowed are ${MAX_RUNS}`)
    const untilMs = untilSeconds === undefined ? null : untilSeconds * 1000
    const asked = { scenario: scenarioOf(body), by: callerOf(request).name, percentages, seeds, objectives, untilMs }
    const record = valueOf(await simulator().sweep(asked))
    reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
    return presentSimulation(record)
  })

  app.get('/simulations', { schema: listSimulations }, () => {
    const items = simulator().list().map(presentSimulation)
    return { items, next_cursor: null, total: items.length }
  })

  app.get('/simulations/:simulation_id', { schema: getSimulation }, ({ params }) => {
    const record = simulator().get(params.simulation_id)
    if (record === undefined) throw noSimulation(params.simulation_id)
    return presentSimulation(record)
  })

  app.get('/simulations/:simulation_id/report', { schema: getReport }, async ({ params }) => {
    const report = await simulator().report(params.simulation_id)
    if (report === null) throw nothingYet(params.simulation_id, 'result')
    // What a session leaves is the debrief of an exercise.
    return simulator().get(params.simulation_id)?.kind === 'session' ? presentDebrief(report as Debrief) : report
  })

  app.get('/simulations/:simulation_id/series', { schema: getSeries }, async ({ params }) => {
    const series = await simulator().series(params.simulation_id)
    if (series === null) throw nothingYet(params.simulation_id, 'series')
    return presentRunSeries(series)
  })

  app.get('/simulations/:simulation_id/residency', { schema: getResidency }, async ({ params, query }) => {
    const record = simulator().get(params.simulation_id)
    if (record === undefined) throw noSimulation(params.simulation_id)
    const residency = await simulator().residency(record.id, sweptRunOf(record.kind, query))
    if (residency === null) throw nothingYet(record.id, 'record of who was where')
    return presentRunResidency(residency)
  })

  // Fastify would read a stream to its end for HEAD.
  app.get('/simulations/:simulation_id/events', { schema: streamSimulation, exposeHeadRoute: false }, ({ params }, reply) => {
    const known = simulator()
    if (known.get(params.simulation_id) === undefined) throw noSimulation(params.simulation_id)
    return streams.send(reply, () => followSimulation(known, params.simulation_id)) as never
  })

  app.delete('/simulations/:simulation_id', { schema: removeSimulation }, async (request, reply) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    const left = await simulator().remove(id, `Cancelled by ${signatureOf(request)}.`)
    const isGone = left === undefined || simulator().get(id) === undefined
    if (isGone) return reply.code(204).send(null)
    reply.code(202)
    return presentSimulation(left)
  })

  function nothingYet(id: string, what: string): ApiProblem {
    const record = simulator().get(id)
    if (record === undefined) return noSimulation(id)
    return new ApiProblem('conflict', `The simulation is ${record.state} and has no ${what}.`)
  }
}

/** @throws ApiProblem when a run of a sweep is not named, or a run is that is alone. */
function sweptRunOf(kind: SimulationKind, { overcommit_percent: overcommitPercent, seed }: Static<typeof ResidencyQuerySchema>) {
  if (kind !== 'sweep') {
    if (overcommitPercent === undefined && seed === undefined) return null
    throw invalidField(seed === undefined ? '/overcommit_percent' : '/seed', `a ${kind} has one run: leave overcommit_percent and seed out`)
  }
  if (overcommitPercent === undefined) throw invalidField('/overcommit_percent', 'overcommit_percent is required: which run of the sweep')
  if (seed === undefined) throw invalidField('/seed', 'seed is required: which run of the sweep')
  return { overcommitPercent, seed }
}

/** Real time unless it says otherwise, and standing still. */
function paceOf({ speed = 1, is_paused: isPaused = true }: { readonly speed?: number | null; readonly is_paused?: boolean }) {
  return { speed, isPaused }
}
