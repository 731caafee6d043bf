/** The REST API of the real engine, with tokens and audit log. */
import type { FastifyBaseLogger, FastifyInstance, LightMyRequestResponse, RouteOptions } from 'fastify'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createAccess, type Access, type AccessOptions } from '../../controller/api/auth/access.ts'
import { newSecret } from '../../controller/api/auth/token-secrets.ts'
import { createApi } from '../../controller/api/server.ts'
import { NO_OWNER_LIMITS, type OwnerLimits } from '../../controller/model/owner-limits.ts'
import type { Role } from '../../controller/model/role.ts'
import { Engine } from '../../controller/engine/engine.ts'
import { createViews } from '../../controller/query/live-views.ts'
import type { Views } from '../../controller/query/views.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { AuditRecord, Store, TokenRecord } from '../../controller/ports/store.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { auditQuery } from './store-builders.ts'

export interface AccessWorld {
  readonly app: FastifyInstance
  readonly access: Access
  readonly engine: Engine
  readonly views: Views
  readonly store: Store
  /** All declared routes except HEAD. */
  readonly routes: readonly RouteOptions[]
  /** The current time. */
  now: number
  /** Creates a token without checks; returns its secret. */
  token(role: Role, over?: Partial<TokenRecord>): Promise<string>
  ask(method: string, path: string, how?: Asked): Promise<LightMyRequestResponse>
  /** Oldest first. */
  audits(): Promise<readonly AuditRecord[]>
}

export interface Asked {
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly from?: string
}

export interface AccessWorldOptions extends Partial<Omit<AccessOptions, 'book' | 'now'>> {
  readonly logger?: FastifyBaseLogger
  readonly store?: Store
  readonly trustedProxies?: readonly string[]
  readonly ownerLimits?: OwnerLimits
}

const START = Date.UTC(2026, 0, 2, 3, 4, 5)

/** The clock is stopped unless a test advances it; due timers run after the call that set them. */
export async function accessWorld(options: AccessWorldOptions = {}): Promise<AccessWorld> {
  const {
    logger,
    store = createMemoryStore(),
    trustedProxies = [],
    ownerLimits = NO_OWNER_LIMITS,
    ...rest
  } = options
  let now = START
  const clock: Clock = {
    now: () => now,
    at: () => () => {},
    soon: (fn) => void setImmediate(fn),
  }
  const quiet = {
    send: () => {},
    onEvents: () => {},
    onFault: () => {},
    initialConfig: {},
    ownerLimits,
    taskLeaseMs: null,
  }
  const engine = new Engine({ clock, random: createSeededRandom('access'), store, ...quiet })
  await engine.start()
  const views = createViews(engine, clock, store.reads)
  const access = createAccess({ book: engine.access, now: clock.now, ...rest })
  const app = createApi({
    commands: engine.commands,
    views,
    version: '0.0.0-test',
    access,
    trustedProxies,
    ownerLimits,
    ...(logger === undefined ? {} : { logger }),
  })
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => void (route.method === 'HEAD' || routes.push(route)))
  await app.ready()
  return {
    app,
    access,
    engine,
    views,
    store,
    routes,
    get now() {
      return now
    },
    set now(at) {
      now = at
    },
    token(role, over = {}) {
      const { id, secret, hash } = newSecret()
      const record = {
        id,
        name: role,
        role,
        secretHash: hash,
        createdAt: now,
        createdBy: null,
        expiresAt: null,
        lastUsedAt: null,
        ...over,
      }
      return new Promise((resolve) => engine.access.create(record, () => resolve(secret)))
    },
    ask: (method, path, { token, headers = {}, body, from = '127.0.0.1' } = {}) =>
      app.inject({
        method: method as 'GET',
        url: path,
        remoteAddress: from,
        headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...headers },
        ...(body === undefined ? {} : { payload: body as object }),
      }),
    audits: async () => (await store.reads.audits(auditQuery({ limit: 10_000 }))).toReversed(),
  }
}
