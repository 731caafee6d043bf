/** Distributes requests over servers: each server is a sequence of tasks, whose work is its requests. */
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import { weightedChoice } from '../../kernel/distributions.ts'
import { exp, log as naturalLog } from '../../kernel/exact-math.ts'
import { type Seed, seededStream } from '../../kernel/seeded-random.ts'
import { TraceError } from '../trace-error.ts'
import type { Work } from '../trace-format.ts'

export interface Request {
  readonly at: Instant
  readonly busyMs: DurationMs
}

export interface Dealing {
  readonly servers: number
  /** 0: round robin. */
  readonly skew: number
  readonly lifeMs: DurationMs
  readonly seed: Seed
  /** Called for each request that is added to the burst before it. */
  readonly onJoined?: () => void
}

export interface ServerTask {
  readonly id: string
  readonly at: Instant
  readonly work: Work
}

/** Maximum number of requests of one task; a server with more continues as another task. */
export const MAX_BURSTS = 100_000
/** In total: limits the tasks of servers that wait for a request in the far future. */
const MAX_LIVES = 1_000_000

/**
 * The tasks of all servers, with or without requests, in no order. Requests come in the order of arrival. A
 * request that arrives while its server still works joins the burst before it: alone on its GPU, the server
 * works at the same times.
 */
export async function* dealRequests(
  requests: AsyncIterable<Request>,
  dealing: Dealing,
): AsyncGenerator<ServerTask> {
  const choose = chooser(dealing)
  let servers: Server[] | null = null
  let endsAt = 0
  for await (const { at, busyMs } of requests) {
    servers ??= Array.from({ length: dealing.servers }, (_, i) => new Server(nameOf(i, dealing.servers), at))
    // All servers are replaced together.
    if (((at - servers[0]!.bornAt) / dealing.lifeMs) * servers.length > MAX_LIVES) {
      throw new TraceError(
        { field: 'server_life' },
        `is too short: until a request at ${at} ms servers live and die more than ${MAX_LIVES} times`,
      )
    }
    for (; at >= servers[0]!.bornAt + dealing.lifeMs;)
      for (const server of servers) yield server.end(server.bornAt + dealing.lifeMs)
    const server = servers[choose()]!
    if (server.isFull) yield server.cut(at)
    if (server.take(at, busyMs) === 'joined') dealing.onJoined?.()
    endsAt = Math.max(endsAt, server.freeAt)
  }
  for (const server of servers ?? []) yield server.end(Math.max(endsAt, server.startAt + 1))
}

function chooser({ servers, skew, seed }: Dealing): () => number {
  if (skew === 0) {
    let turn = 0
    return () => turn++ % servers
  }
  const random = seededStream(seed, 'servers')
  const choose = weightedChoice(
    Array.from({ length: servers }, (_, i) => [i, exp(-skew * naturalLog(i + 1))] as const),
  )
  return () => choose(random)
}

function nameOf(index: number, servers: number): string {
  return `server-${String(index + 1).padStart(String(servers).length, '0')}`
}

class Server {
  readonly #name: string
  #tasks = 0
  #bursts: Array<readonly [DurationMs, DurationMs]> = []
  /** Start of the current task; later than `bornAt` if an earlier one was full. */
  startAt: Instant
  bornAt: Instant
  /** When it has completed all requests so far. */
  freeAt: Instant

  constructor(name: string, at: Instant) {
    this.#name = name
    this.startAt = at
    this.bornAt = at
    this.freeAt = at
  }

  get isFull(): boolean {
    return this.#bursts.length === MAX_BURSTS
  }

  take(at: Instant, busyMs: DurationMs): 'joined' | 'own_burst' {
    const last = this.#bursts.at(-1)
    const joins = last !== undefined && at <= this.freeAt
    if (joins) this.#bursts[this.#bursts.length - 1] = [last[0], last[1] + busyMs]
    else this.#bursts.push([at - this.startAt, busyMs])
    this.freeAt = Math.max(this.freeAt, at) + busyMs
    return joins ? 'joined' : 'own_burst'
  }

  /** Its life is over; the next task begins. */
  end(at: Instant): ServerTask {
    const task = this.cut(at)
    this.bornAt = at
    return task
  }

  cut(at: Instant): ServerTask {
    this.#tasks += 1
    const stayMs = at - this.startAt
    const task: ServerTask = {
      id: `${this.#name}.${this.#tasks}`,
      at: this.startAt,
      work: {
        kind: 'bursts',
        at: this.#bursts,
        stayMs: this.#bursts.length === 0 ? Math.max(1, stayMs) : stayMs,
      },
    }
    this.#bursts = []
    this.startAt = at
    this.freeAt = at
    return task
  }
}
