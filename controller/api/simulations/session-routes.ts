/** Sessions: interactive simulations that can move back and forth in time. */
import { mayCall } from '../../model/role.ts'
import type { SessionCommand, SessionFault, SessionView } from '../../ports/simulation.ts'
import { callerOf, type Caller } from '../auth/caller.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { presentInstant } from '../http/instant.ts'
import { operation, type OperationSchema } from '../http/operation.ts'
import { presentSimulation } from './present.ts'
import { SimulationPathSchema, SimulationRef } from './schema.ts'
import {
  FaultBodySchema,
  FaultListSchema,
  ForkBodySchema,
  SeekBodySchema,
  SessionSchema,
  SnapshotBodySchema,
  SpeedBodySchema,
  StepBodySchema,
  type SessionBody,
} from './session-schema.ts'
import { ownSimulation, simulatorOf, valueOf } from './simulation-request.ts'

const OF_CONTROL = ['not_found', 'conflict'] as const

const getSession = operation(
  {
    operationId: 'getSimulationSession',
    role: 'viewer',
    summary: 'State of a session',
    description: 'Returns the virtual time, speed, inputs and snapshots of an interactive session.',
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
      'Pauses the session. An operator action in the scenario counts, together with its response, as one ' +
      'entry.',
    ...control(),
    body: StepBodySchema,
  },
  OF_CONTROL,
)

const setSessionSpeed = operation(
  {
    operationId: 'setSessionSpeed',
    summary: 'Continue at a given speed',
    description: 'The speed is in virtual seconds per real second. A paused session continues.',
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
      'Going back replays the session from the start with the same requests, so the state at a given ' +
      'time is always the same. Responds when the session has reached that time, or after 20 s if it is ' +
      'still seeking.',
    ...control(),
    body: SeekBodySchema,
  },
  OF_CONTROL,
)

const snapshotSession = operation(
  {
    operationId: 'snapshotSession',
    summary: 'Take a snapshot of the current state',
    description: 'Pass the ID of the snapshot to seek or fork.',
    ...control(),
    body: SnapshotBodySchema,
  },
  OF_CONTROL,
)

const forkSession = operation(
  {
    operationId: 'forkSession',
    role: 'submitter',
    answerHeaders: ['Location'],
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

function presentSession(view: SessionView): SessionBody {
  return {
    started_at: presentInstant(view.startAt),
    now: presentInstant(view.nowAt),
    virtual_seconds: view.virtualMs / 1000,
    ends_after_seconds: view.endMs === null ? null : view.endMs / 1000,
    is_paused: view.isPaused,
    speed: view.speed,
    is_seeking: view.isSeeking,
    events: view.events,
    last_seq: view.lastSeq,
    inputs: view.inputs,
    inputs_ahead: view.inputsAhead,
    state_hash: view.stateHash,
    snapshots: view.snapshots.map(({ id, name, virtualMs, events, stateHash }) => ({
      id,
      name,
      virtual_seconds: virtualMs / 1000,
      events,
      state_hash: stateHash,
    })),
  }
}

/**
 * Faults in a session. Hidden faults are for instructors, who have the role admin: no other route or role can
 * read them.
 */

const listFaults = operation(
  {
    operationId: 'listSessionFaults',
    role: 'viewer',
    summary: 'Faults of a session, from its scenario or injected',
    description: 'Hidden faults are visible only to admins.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    response: { 200: FaultListSchema },
  },
  ['not_found', 'conflict'],
)

const injectFault = operation(
  {
    operationId: 'injectSessionFault',
    role: 'submitter',
    summary: 'Inject a fault into a session now',
    description:
      'The owner of the session and callers with the role `operator` can inject a visible fault. A ' +
      'hidden fault ' +
      'requires the role `admin`.',
    tags: ['simulations'],
    params: SimulationPathSchema,
    body: FaultBodySchema,
    response: { 200: FaultListSchema },
  },
  ['not_found', 'conflict'],
)

/** GET and POST /simulations/{simulation_id}/faults. */
export function sessionFaultRoutes(app: ApiApp, { simulation }: ApiContext): void {
  app.get('/simulations/:simulation_id/faults', { schema: listFaults }, async (request) =>
    shownTo(request, valueOf(await simulatorOf(simulation).faults(request.params.simulation_id))),
  )

  app.post('/simulations/:simulation_id/faults', { schema: injectFault }, async (request) => {
    const { fault, is_hidden: isHidden = false } = request.body
    const { name, role } = callerOf(request)
    const { id } = ownSimulation(simulatorOf(simulation), request.params.simulation_id, request)
    if (isHidden && !mayCall(role, 'admin'))
      throw new ApiProblem('forbidden', 'Permission denied: a hidden fault requires role `admin`.')
    return shownTo(request, valueOf(await simulatorOf(simulation).injectFault(id, fault, isHidden, name)))
  })
}

function shownTo(request: { readonly caller: Caller | null }, faults: readonly SessionFault[]) {
  const isInstructor = mayCall(callerOf(request).role, 'admin')
  const shown = faults.filter(({ isHidden }) => isInstructor || !isHidden)
  return {
    items: shown.map(({ atMs, isHidden, origin, by, fault }) => ({
      virtual_seconds: atMs / 1000,
      is_hidden: isHidden,
      origin,
      by,
      fault,
    })),
  }
}
