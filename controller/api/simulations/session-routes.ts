/** Sessions: interactive simulations that can move back and forth in time. */
import type { SessionCommand } from '../../ports/simulation.ts'
import { callerOf, type Caller } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { operation, type OperationSchema } from '../http/operation.ts'
import { presentSession } from './present-session.ts'
import { presentSimulation } from './present.ts'
import {
  ForkBodySchema,
  SeekBodySchema,
  SessionSchema,
  SnapshotBodySchema,
  SpeedBodySchema,
  StepBodySchema,
} from './session-schema.ts'
import { SimulationPathSchema, SimulationRef } from './schema.ts'
import { ownSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const OF_CONTROL = ['not_found', 'conflict'] as const

const getSession = operation(
  {
    operationId: 'getSimulationSession',
    role: 'viewer',
    summary: 'State of a session',
    description: 'Virtual time, speed, inputs and snapshots of an interactive session.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SessionSchema },
  },
  OF_CONTROL,
)

const pauseSession = operation(
  {
    operationId: 'pauseSession',
    summary: 'Pause a session',
    description: 'Virtual time stops until a speed is set. Idempotent.',
    ...control(),
  },
  OF_CONTROL,
)

const stepSession = operation(
  {
    operationId: 'stepSession',
    summary: 'Process one or more entries of the event queue',
    description:
      'Pauses the session. An operator action of the scenario with its response counts as one entry.',
    ...control(),
    body: StepBodySchema,
  },
  OF_CONTROL,
)

const setSessionSpeed = operation(
  {
    operationId: 'setSessionSpeed',
    summary: 'Continue at a given speed',
    description: 'Virtual seconds per real second. A paused session continues.',
    ...control(),
    body: SpeedBodySchema,
  },
  OF_CONTROL,
)

const seekSession = operation(
  {
    operationId: 'seekSession',
    summary: 'Go to an earlier or later time, or to a snapshot',
    description:
      'Going back replays the session from the start with the same requests, so a time always has the ' +
      'same state. Responds on arrival, or after 20 s while still seeking.',
    ...control(),
    body: SeekBodySchema,
  },
  OF_CONTROL,
)

const snapshotSession = operation(
  {
    operationId: 'snapshotSession',
    summary: 'Take a snapshot of the current state',
    description: 'The snapshot has an id for seek and fork.',
    ...control(),
    body: SnapshotBodySchema,
  },
  OF_CONTROL,
)

const forkSession = operation(
  {
    operationId: 'forkSession',
    role: 'submitter',
    summary: 'Open a new session from the current state or a snapshot',
    description: 'The new session is independent; the original one is unchanged.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    body: ForkBodySchema,
    response: { 202: SimulationRef },
  },
  [...OF_CONTROL, 'too_many_simulations'],
)

/** GET /simulations/{simulation_id}/session; POST its /pause, /step, /speed, /seek, /snapshot and /fork. */
export function sessionRoutes(app: ApiApp, { simulation }: ApiContext): void {
  const simulator = () => simulatorOf(simulation)
  const drive = async (
    request: { readonly params: { readonly simulation_id: string }; readonly caller: Caller | null },
    command: SessionCommand,
  ) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    return presentSession(valueOf(await simulator().control(id, command)))
  }

  app.get('/simulations/:simulation_id/session', { schema: getSession }, async ({ params }) =>
    presentSession(valueOf(await simulator().control(params.simulation_id, { kind: 'state' }))),
  )
  app.post('/simulations/:simulation_id/pause', { schema: pauseSession }, (request) =>
    drive(request, { kind: 'pause' }),
  )
  app.post('/simulations/:simulation_id/step', { schema: stepSession }, (request) =>
    drive(request, { kind: 'step', count: request.body.count ?? 1 }),
  )
  app.post('/simulations/:simulation_id/speed', { schema: setSessionSpeed }, (request) => {
    return drive(request, { kind: 'speed', factor: request.body.speed })
  })
  app.post('/simulations/:simulation_id/seek', { schema: seekSession }, (request) =>
    drive(request, seekOf(request.body)),
  )
  app.post('/simulations/:simulation_id/snapshot', { schema: snapshotSession }, (request) =>
    drive(request, { kind: 'snapshot', name: request.body.name ?? '' }),
  )

  app.post('/simulations/:simulation_id/fork', { schema: forkSession }, async (request, reply) => {
    const { id } = ownSimulation(simulator(), request.params.simulation_id, request)
    const record = valueOf(await simulator().fork(id, request.body.snapshot ?? null, callerOf(request).name))
    reply.code(202).header('location', `/api/v1/simulations/${record.id}`)
    return presentSimulation(record)
  })
}

/** The schema requires exactly one of the two fields. */
function seekOf({
  virtual_seconds: seconds,
  snapshot,
}: {
  readonly virtual_seconds?: number
  readonly snapshot?: string
}): SessionCommand {
  if (snapshot !== undefined) return { kind: 'restore', snapshot }
  return { kind: 'seek', virtualMs: Math.round((seconds as number) * 1000) }
}

/** Common parts of the routes that control a session. */
function control() {
  return {
    role: 'submitter',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SessionSchema },
  } as const satisfies Partial<OperationSchema>
}
