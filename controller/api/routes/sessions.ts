/** Sessions: simulated worlds that are driven by hand, back and forth. */
import type { SessionCommand } from '../../ports/simulation.ts'
import { callerOf, type Caller } from '../caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { operation, type OperationSchema } from '../operation.ts'
import { presentSession } from '../present/session.ts'
import { presentSimulation } from '../present/simulation.ts'
import {
  ForkBodySchema,
  SeekBodySchema,
  SessionSchema,
  SnapshotBodySchema,
  SpeedBodySchema,
  StepBodySchema,
} from '../schema/session.ts'
import { SimulationPathSchema, SimulationRef } from '../schema/simulation.ts'
import { ownSimulation, simulatorOf, valueOf } from '../simulation-request.ts'

const OF_CONTROL = ['not_found', 'conflict'] as const

const getSession = operation(
  {
    operationId: 'getSimulationSession',
    role: 'viewer',
    summary: 'Where a session stands, and how it goes on',
    description: 'Virtual time, pace, inputs and snapshots of an interactive session.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SessionSchema },
  },
  OF_CONTROL,
)

const pauseSession = operation(
  {
    operationId: 'pauseSession',
    summary: 'Its time stands still',
    description: 'Virtual time stands still until a pace is set. Repeating it changes nothing.',
    ...control(),
  },
  OF_CONTROL,
)

const stepSession = operation(
  {
    operationId: 'stepSession',
    summary: 'Take one more entry of its event queue, or several',
    description: 'Pauses it. An action of the scenario’s operator, with its answer, counts as one.',
    ...control(),
    body: StepBodySchema,
  },
  OF_CONTROL,
)

const setSessionSpeed = operation(
  {
    operationId: 'setSessionSpeed',
    summary: 'Go on, at that pace',
    description: 'Virtual seconds for each second. A session that was paused goes on.',
    ...control(),
    body: SpeedBodySchema,
  },
  OF_CONTROL,
)

const seekSession = operation(
  {
    operationId: 'seekSession',
    summary: 'Go to an instant, back or forth, or to a snapshot',
    description:
      'Back is a replay from the start with the same requests: whoever comes to an instant again finds the same state. Answers when it is there, or after 20 s on the way.',
    ...control(),
    body: SeekBodySchema,
  },
  OF_CONTROL,
)

const snapshotSession = operation(
  {
    operationId: 'snapshotSession',
    summary: 'Keep where it is, to come back to',
    description: 'The state is kept under a number, to fork from it.',
    ...control(),
    body: SnapshotBodySchema,
  },
  OF_CONTROL,
)

const forkSession = operation(
  {
    operationId: 'forkSession',
    role: 'submitter',
    summary: 'Open another session that goes on from here, or from a snapshot',
    description: 'The new session goes on by itself; the one it came from is not changed.',
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

/** The schema requires exactly one of them. */
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

/** What the routes that drive a session have in common. */
function control() {
  return {
    role: 'submitter',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: SessionSchema },
  } as const satisfies Partial<OperationSchema>
}
