/** Simulations: runs of scenarios, isolated from the live cluster. */
import { exerciseRoutes } from './exercise-routes.ts'
import { simulationResultRoutes } from './result-routes.ts'
import { scenarioRoutes } from './scenario-routes.ts'
import { sessionInterfaceRoutes } from './session-interface-routes.ts'
import { sessionFaultRoutes, sessionRoutes } from './session-routes.ts'
import { traceRoutes, usageRoutes } from './trace-routes.ts'
import { Type } from 'typebox'
import { isOver, type Simulation } from '../../ports/simulation.ts'
import { callerOf, signatureOf } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { EventStreams, HEARTBEAT_MS, SSE_HEARTBEAT, sseEvent } from '../http/server-sent-events.ts'
import { presentSimulation } from './present.ts'
import {
  NewSimulationSchema,
  NewSweepSchema,
  SimulationPageSchema,
  SimulationPathSchema,
  SimulationRef,
  SimulationStreamSchema,
} from './schema.ts'
import {
  SCENARIO_BODY_LIMIT_BYTES,
  choicesOf,
  noSimulation,
  ownSimulation,
  scenarioOf,
  simulatorOf,
  valueOf,
} from './simulation-request.ts'

const startSimulation = operation(
  {
    operationId: 'startSimulation',
    role: 'submitter',
    answerHeaders: ['Location'],
    summary: 'Run a scenario, or open an interactive session with it',
    description:
      'The scenario is validated immediately; the run is queued and isolated from the live cluster. A ' +
      'session is open when the response arrives.',
    tags: ['simulations'],
    body: NewSimulationSchema,
    response: { 202: SimulationRef },
  },
  ['not_found', 'conflict', 'too_many_simulations', 'store_failed'],
)

const startSweep = operation(
  {
    operationId: 'startSweep',
    role: 'submitter',
    answerHeaders: ['Location'],
    summary: 'Run a scenario at several overcommit percentages and recommend one',
    description:
      'Runs each percentage with each seed, for every combination of the other swept values; at most ' +
      '2,000 runs. A cancelled sweep keeps its finished runs; its report contains their number.',
    tags: ['simulations'],
    body: NewSweepSchema,
    response: { 202: SimulationRef },
  },
  ['not_found', 'conflict', 'too_many_simulations', 'store_failed'],
)

const listSimulations = operation(
  {
    operationId: 'listSimulations',
    role: 'viewer',
    summary: 'All simulations, newest first',
    description: 'Stored runs, sweeps and sessions, with their state and progress.',
    tags: ['simulations'],
    response: { 200: SimulationPageSchema },
  },
  ['conflict', 'store_failed'],
)

const getSimulation = operation(
  {
    operationId: 'getSimulation',
    role: 'viewer',
    summary: 'One simulation',
    description: 'Returns the parameters, state and progress. To get the result, use `report`.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationRef },
  },
  ['not_found', 'conflict', 'store_failed'],
)

const streamSimulation = operation(
  {
    operationId: 'streamSimulation',
    role: 'viewer',
    answerHeaders: ['X-Accel-Buffering'],
    summary: 'Stream the progress of a simulation',
    description:
      'Sends a `simulation` event whenever the state or progress changes, until the simulation has ' +
      'ended. The data of each event is a Simulation.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SimulationStreamSchema },
  },
  ['not_found', 'conflict', 'too_many_streams', 'store_failed'],
)

const removeSimulation = operation(
  {
    operationId: 'removeSimulation',
    role: 'submitter',
    summary: 'Cancel or delete a simulation',
    description:
      'Cancels a queued or running simulation within 2 s and keeps its partial results (202); deletes a ' +
      'finished one with its results (204). Simulations of other users require the role operator.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 202: SimulationRef, 204: Type.Null({ description: 'Deleted' }) },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** POST and GET /simulations; GET and DELETE /simulations/{simulation_id}; its /events. */
export function simulationRoutes(app: ApiApp, api: ApiContext): void {
  collectionRoutes(app, api)
  simulationResultRoutes(app, api)
  sessionRoutes(app, api)
  sessionFaultRoutes(app, api)
  sessionInterfaceRoutes(app, api)
  exerciseRoutes(app, api)
  scenarioRoutes(app, api)
  traceRoutes(app, api)
  usageRoutes(app, api)
}

function collectionRoutes(app: ApiApp, { simulation, streams }: ApiContext): void {
  const followers = new EventStreams()
  const simulator = () => simulatorOf(simulation)

  app.post(
    '/simulations',
    { schema: startSimulation, bodyLimit: SCENARIO_BODY_LIMIT_BYTES },
    async (request, reply) => {
      const { body } = request
      const asked = { scenario: scenarioOf(body), ...choicesOf(body), by: callerOf(request).name }
      const record = valueOf(
        await (body.mode === 'session'
          ? simulator().openSession({ ...asked, ...paceOf(body) })
          : simulator().run(asked)),
      )
      reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
      return presentSimulation(record)
    },
  )

  app.post(
    '/simulations/sweep',
    { schema: startSweep, bodyLimit: SCENARIO_BODY_LIMIT_BYTES },
    async (request, reply) => {
      const { body } = request
      const {
        overcommit_percents: percentages = null,
        seeds = null,
        objectives = [],
        until_seconds: untilSeconds,
      } = body
      const fields = Object.entries(body.fields ?? {}).map(([field, values]) => ({ field, values }))
      const untilMs = untilSeconds === undefined ? null : untilSeconds * 1000
      const asked = {
        scenario: scenarioOf(body),
        by: callerOf(request).name,
        percentages,
        seeds,
        fields,
        objectives,
        untilMs,
      }
      const record = valueOf(await simulator().sweep(asked))
      reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
      return presentSimulation(record)
    },
  )

  app.get('/simulations', { schema: listSimulations }, () => {
    const items = simulator().list().map(presentSimulation)
    return { items, next_cursor: null, total: items.length }
  })

  app.get('/simulations/:simulation_id', { schema: getSimulation }, ({ params }) => {
    const record = simulator().get(params.simulation_id)
    if (record === undefined) throw noSimulation(params.simulation_id)
    return presentSimulation(record)
  })

  // Fastify would read a stream to its end for HEAD.
  app.get(
    '/simulations/:simulation_id/events',
    { schema: streamSimulation, exposeHeadRoute: false },
    (request, reply) => {
      const { params } = request
      const known = simulator()
      if (known.get(params.simulation_id) === undefined) throw noSimulation(params.simulation_id)
      streams.take(request, reply)
      return followers.send(reply, () => followSimulation(known, params.simulation_id)) as never
    },
  )

  app.delete('/simulations/:simulation_id', { schema: removeSimulation }, async (request, reply) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    const left = await simulator().remove(id, `Cancelled by ${signatureOf(request)}.`)
    const isGone = left === undefined || simulator().get(id) === undefined
    if (isGone) return reply.code(204).send(null)
    reply.code(202)
    return presentSimulation(left)
  })
}

/** Returns the speed and pause state, by default real time and paused. */
function paceOf({
  speed = 1,
  is_paused: isPaused = true,
}: {
  readonly speed?: number | null
  readonly is_paused?: boolean
}) {
  return { speed, isPaused }
}

/** Ends when the simulation is over or gone. */
async function* followSimulation(
  simulation: Simulation,
  id: string,
): AsyncGenerator<string, void, undefined> {
  let seen = -1
  for (;;) {
    const record = simulation.get(id)
    if (record === undefined) return yield sseEvent('end', { id, state: null })
    const isNews = record.revision > seen
    if (isNews) yield sseEvent('simulation', presentSimulation(record), record.revision)
    else yield SSE_HEARTBEAT
    seen = record.revision
    if (isOver(record.state)) return yield sseEvent('end', { id, state: record.state })
    await simulation.changed(id, seen, HEARTBEAT_MS)
  }
}
