/**
 * The world of a session, with the REST API of its own controller. Any fault may be injected, so every
 * heartbeat is sent.
 */
import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { createMemoryStore } from '../../../controller/adapters/memory-store.ts'
import { createAccess, type Access } from '../../../controller/api/auth/access.ts'
import type { Caller } from '../../../controller/api/auth/caller.ts'
import type { Controller } from '../../../controller/controller.ts'
import { Series } from '../../../controller/series/series.ts'
import type { Instant } from '../../../protocol/units.ts'
import { createSeededRandom } from '../../../simulator/kernel/seeded-random.ts'
import { arrivalsUntil } from '../../../simulator/run/arrivals-until.ts'
import { OperatorAgenda } from '../../../simulator/run/operator-agenda.ts'
import { nodeIdIn, type RunPlan } from '../../../simulator/run/run.ts'
import { startTasksOf, workloadOf } from '../../../simulator/scenario/generate.ts'
import type { Position, SteppableWorld } from '../../../simulator/session/steppable-world.ts'
import { World } from '../../../simulator/world/world.ts'
import { RestOperatorClient } from '../../runs/operator-client.ts'
import type { AskedBy, Input, RequestInput, Unplaced } from './session-input.ts'

/** History that its pages can show. */
const RETAIN_EVENTS = 200_000
const RETAIN_DECISIONS = 20_000

export interface SessionWorld extends SteppableWorld<Input> {
  /** For reading; null: no controller runs. */
  interface(): Promise<FastifyInstance | null>
}

export interface SessionAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  /** The request has reached the controller and may have changed something. */
  readonly isCommand: boolean
}

export async function openSessionWorld(plan: RunPlan): Promise<SessionWorld> {
  const start = startTasksOf(plan, createSeededRandom(plan.seed))
  const retained = { retainFinished: true, retainEvents: RETAIN_EVENTS, retainDecisions: RETAIN_DECISIONS }
  const world = new World(plan, {
    seed: plan.seed,
    store: (initial) => createMemoryStore({ ...retained, initial }),
    start,
    mayBreak: true,
  })
  const charts = sampleEveryController(world)
  await world.start()
  charts.of(world.controller)
  const pump = (isAnswered: () => boolean): Promise<void> => world.runUntil(null, isAnswered)
  const operatorClient = new RestOperatorClient(world, pump, (controller) => ({
    series: charts.of(controller),
    events: controller.events,
    access: sessionAccess(() => world.clock.now()),
  }))
  const agenda = new OperatorAgenda(
    plan.operator,
    plan.operator.length === 0 ? null : asOperator(operatorClient),
    world.clock,
    plan.clock.startMs,
    (name) => nodeIdIn(plan, name),
  )
  const isOpen = (id: string): boolean => world.controller.views.openTask(id) !== undefined
  const arrivals = arrivalsUntil(workloadOf(plan, world.random), plan.clock.untilMs, isOpen)
  world.feed(arrivals)
  return {
    world,
    agenda,
    interface: () => operatorClient.interface(),
    async apply(input) {
      if (input.kind === 'fault') world.faults?.inject(input.fault)
      if (input.kind !== 'request') return NOTHING
      const answered = await operatorClient.put(injected(input))
      return answered === null ? NO_CONTROLLER : { ...answered, headers: textHeaders(answered.headers) }
    },
    stateHash: (position) => stateHashOf(world, position),
    async close() {
      charts.stop()
      await arrivals.close()
      await agenda.close()
      await operatorClient.close()
    },
  }
}

/** Converts a request for the REST API. */
export function injected({ method, path, headers, body, by, role }: Unplaced<RequestInput>) {
  return {
    method: method as 'GET',
    url: path,
    headers: { ...headers, host: 'localhost', authorization: signed({ by, role }) },
    ...(body === null ? {} : { payload: Buffer.from(body) }),
  }
}

export function textHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
  )
}

const NOTHING: SessionAnswer = { status: 204, headers: {}, body: Buffer.alloc(0), isCommand: true }

/** The answer of a proxy while the controller is down. */
export const NO_CONTROLLER: SessionAnswer = {
  status: 503,
  headers: { 'content-type': 'application/problem+json', 'retry-after': '1' },
  body: Buffer.from(
    JSON.stringify({
      type: 'urn:headroom:problem:store_failed',
      title: 'The store does not answer',
      status: 503,
      detail: 'The controller of this session is not running at this time.',
      code: 'store_failed',
      errors: [],
      request_id: '',
    }),
  ),
  isCommand: false,
}

/** Requests of the scenario's own operator, with all rights. */
function asOperator(operatorClient: RestOperatorClient) {
  const headers = {
    authorization: signed({ by: 'operator', role: 'admin' }),
    'content-type': 'application/json',
  }
  return {
    ask: (method: Parameters<RestOperatorClient['ask']>[0], path: string, body: unknown) =>
      operatorClient.ask(method, path, body, headers),
    close: () => Promise.resolve(),
  }
}

/** Charts of a controller start with it. */
function sampleEveryController(world: World): { of(controller: Controller): Series; stop(): void } {
  let known: { readonly controller: Controller; readonly series: Series } | null = null
  const begin = (): void => {
    known?.series.stop()
    const { controller } = world
    const series = new Series(controller.views)
    series.start(world.clock, null)
    known = { controller, series }
  }
  world.controllers.onBegun(begin)
  return {
    of(controller) {
      if (known?.controller !== controller) begin()
      return (known as { readonly series: Series }).series
    },
    stop: () => known?.series.stop(),
  }
}

/** Hash of all events, the state of every open task and node, and the time. */
function stateHashOf(world: World, { events, atMs }: Position): string {
  const { views } = world.controller
  const hash = createHash('sha256')
  const add = (value: unknown): void => void hash.update(`${JSON.stringify(value)}\n`)
  add([world.digest(), events, atMs, views.config().fields])
  for (const { spec, state, placement } of views.openTasks())
    add([spec.id, state, placement?.residency ?? null, placement?.node.id ?? null])
  for (const { id, isCordoned, overcommitOverride, reserveOverrideMib } of views.nodes()) {
    add([id, isCordoned, overcommitOverride, reserveOverrideMib])
  }
  return hash.digest('hex')
}

/**
 * Authenticates requests inside a session: the forwarding controller states the caller, and only it can reach
 * that REST API.
 */

const SCHEME = 'Session '

/** Returns the header that states the caller. */
function signed({ by, role }: AskedBy): string {
  return SCHEME + encodeURIComponent(JSON.stringify({ name: by, role, tokenId: null } satisfies Caller))
}

function sessionAccess(now: () => Instant): Access {
  return {
    ...createAccess({ book: null, now, requestsPerSecond: 0, anonymousRequestsPerSecond: 0 }),
    authenticator: {
      isRequired: true,
      callerOf: readCaller,
      knownCaller: readCaller,
      isGood: () => true,
      hasAdmin: () => true,
    },
  }
}

function readCaller({ authorization = '' }: { readonly authorization?: string | undefined }): Caller {
  return JSON.parse(decodeURIComponent(authorization.slice(SCHEME.length))) as Caller
}
