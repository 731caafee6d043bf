/**
 * The REST API inside a simulated world: requests of a scenario's operator go through the real routes,
 * while virtual time does not advance.
 */
import { setImmediate } from 'node:timers/promises'
import type { FastifyInstance, InjectOptions } from 'fastify'
import type { Controller } from '../../controller/controller.ts'
import { createApi, type ApiOptions } from '../../controller/api/server.ts'
import type { Commands } from '../../controller/model/command.ts'
import type { OperatorAnswer, OperatorClient } from '../../simulator/run/operator-agenda.ts'
import type { OpenOperatorClient } from '../../simulator/run/run.ts'
import type { OperatorMethod } from '../../simulator/scenario/scenario.ts'
import type { World } from '../../simulator/world/world.ts'
import { packageVersion } from '../package-info.ts'

/** Maximum turns of the event loop for an answer. */
const MAX_TURNS = 100_000

export const openOperatorClient: OpenOperatorClient = (world, pump): Promise<OperatorClient> =>
  Promise.resolve(new RestOperatorClient(world, pump))

type Pump = Parameters<OpenOperatorClient>[1]

/** Options of the interface that depend on the controller. */
export type OperatorClientOptions = (controller: Controller) => Partial<ApiOptions>

/** Creates and releases the interface of a controller. */
export interface Routes {
  appFor(options: ApiOptions): Promise<FastifyInstance>
  release(app: FastifyInstance): Promise<void>
}

/** Each controller has its own interface. */
const OWN_ROUTES: Routes = {
  async appFor(options) {
    const app = createApi(options)
    await app.ready()
    return app
  },
  release: (app) => app.close(),
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: Buffer
  /** The request has reached the controller, and may have changed something. */
  readonly isCommand: boolean
}

/** The interface of one controller, and the number of its unanswered commands. */
interface Front {
  readonly controller: Controller
  readonly app: FastifyInstance
  isCommanded: boolean
  unanswered: number
}

export class RestOperatorClient implements OperatorClient {
  readonly #world: World
  readonly #pump: Pump
  readonly #optionsOf: OperatorClientOptions
  readonly #routes: Routes
  #front: Front | null = null

  constructor(world: World, pump: Pump, optionsOf: OperatorClientOptions = () => ({}), routes = OWN_ROUTES) {
    this.#world = world
    this.#pump = pump
    this.#optionsOf = optionsOf
    this.#routes = routes
  }

  /**
   * A controller that dies during the request has cut the connection: the operator retries once there is one.
   */
  async ask(
    method: OperatorMethod,
    path: string,
    body: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<OperatorAnswer> {
    const type = { 'content-type': 'application/json' }
    const withBody =
      body === null ? { headers } : { payload: JSON.stringify(body), headers: { ...type, ...headers } }
    for (;;) {
      await this.#untilControllerUp()
      const answer = await this.put({ method, url: path, ...withBody })
      if (answer !== null) return { status: answer.status, text: answer.body.toString() }
    }
  }

  /** Carries out a request at this instant. Null: no controller runs, or no longer. */
  async put(request: InjectOptions): Promise<Answered | null> {
    return this.#world.isControllerUp
      ? this.#askOnce(await this.#frontOf(this.#world.controller), request)
      : null
  }

  /** The current interface, for reading; null: no controller runs. */
  async interface(): Promise<FastifyInstance | null> {
    return this.#world.isControllerUp ? (await this.#frontOf(this.#world.controller)).app : null
  }

  async close(): Promise<void> {
    if (this.#front !== null) await this.#routes.release(this.#front.app)
  }

  async #untilControllerUp(): Promise<void> {
    while (!this.#world.isControllerUp) {
      const from = this.#world.clock.steps
      await this.#pump(() => this.#world.isControllerUp)
      if (this.#world.clock.steps === from)
        throw new Error('no controller will start again, and the operator is waiting for an answer')
    }
  }

  /** Null: the controller is gone. */
  async #askOnce(front: Front, request: InjectOptions): Promise<Answered | null> {
    front.isCommanded = false
    let isAnswered = false
    const answer = front.app.inject(request).finally(() => {
      isAnswered = true
    })
    const isOver = (): boolean => isAnswered || this.#isGone(front)
    // Without faults an answer is due at this instant; with faults, time advances while a command waits for
    // its answer.
    const isDue = (): boolean => isOver() || (this.#world.faults !== null && front.unanswered === 0)
    // The world advances only once the request has reached the controller, so that the duration of HTTP has
    // no effect.
    for (let turn = 0; !isOver() && turn < MAX_TURNS; turn++) {
      await setImmediate()
      if (front.isCommanded) await this.#pump(isDue)
    }
    if (!isAnswered && this.#isGone(front)) {
      answer.catch(() => {})
      return null
    }
    if (!isAnswered)
      throw new Error(
        `${String(request.method).toUpperCase()} ${String(request.url)} is not answered in virtual time`,
      )
    const { statusCode, headers, rawPayload } = await answer
    if (statusCode >= 500 && this.#isGone(front)) return null
    return { status: statusCode, headers, body: rawPayload, isCommand: front.isCommanded }
  }

  #isGone({ controller }: Front): boolean {
    return controller !== this.#world.controller || !this.#world.isControllerUp
  }

  async #frontOf(controller: Controller): Promise<Front> {
    if (this.#front?.controller === controller) return this.#front
    await this.close()
    const { commands, views } = controller
    const tap: CommandTap = {
      requested: () => {
        front.isCommanded = true
        front.unanswered += 1
      },
      answered: () => (front.unanswered -= 1),
    }
    const app = await this.#routes.appFor({
      commands: tapped(commands, tap),
      views,
      version: packageVersion(),
      fleet: 'simulated',
      inVirtualTime: true,
      ...this.#optionsOf(controller),
    })
    const front: Front = { controller, app, isCommanded: false, unanswered: 0 }
    this.#front = front
    return front
  }
}

interface CommandTap {
  requested(): void
  answered(): void
}

/** Returns the same commands; `tap` is called for each, and for its answer. */
function tapped(commands: Commands, tap: CommandTap): Commands {
  return new Proxy(commands, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target)
      if (typeof member !== 'function') return member
      return (...args: readonly unknown[]): unknown => {
        const answer = args.at(-1)
        tap.requested()
        const answering = (...answers: readonly unknown[]): void => {
          tap.answered()
          if (typeof answer === 'function') Reflect.apply(answer, undefined, answers)
        }
        return Reflect.apply(member, target, [...args.slice(0, -1), answering]) as unknown
      }
    },
  })
}
