/**
 * What gateways route by: open tasks that serve HTTP, and tokens for endpoints. A gateway asks with the
 * revision that it has, and is answered when there is another one.
 */
import { createHash } from 'node:crypto'
import type { TaskPort, TaskSpec } from '../../../protocol/task.ts'
import type { EventSource } from '../../engine/durable-events.ts'
import type { Task } from '../../model/placement.ts'
import type { Views } from '../../query/views.ts'
import type { Access } from '../auth/access.ts'
import { ApiProblem } from '../http/errors.ts'
import { presentInstantOrNull } from '../http/instant.ts'
import type { EndpointsBody, ReplicaBody } from './schema.ts'

/** Maximum number of tasks; those that were submitted first are in it. */
const MAX_REPLICAS = 10_000
/** Gateways that wait at a time. */
const MAX_GATEWAYS = 32
/** While a gateway waits. */
const LOOK_EVERY_MS = 50
/** Not everything that changes is an event: tokens expire and are revoked. */
const RENEW_AFTER_MS = 1_000

interface EndpointTableOptions {
  readonly views: Pick<Views, 'openTasks' | 'openTask'>
  readonly source: EventSource
  readonly access: Pick<Access, 'book' | 'hosts'>
  /** False in virtual time. */
  readonly mayWait: boolean
}

interface WaitingGateway {
  readonly seen: string
  readonly end: () => void
}

export class EndpointTable {
  readonly #options: EndpointTableOptions
  /** Tasks that serve HTTP, in order of submission; ended ones until the next look. */
  readonly #taskIds = new Set<string>()
  readonly #waiting = new Set<WaitingGateway>()
  #unsubscribe: (() => void) | null = null
  #timer: NodeJS.Timeout | null = null
  #body: EndpointsBody | null = null
  #renewAt = 0
  #isClosed = false

  constructor(options: EndpointTableOptions) {
    this.#options = options
  }

  /**
   * Resolves when the revision differs from `seen`, the time is over, or the gateway has gone.
   * @throws ApiProblem when too many wait.
   */
  async read(seen: string | undefined, ms: number, gone: AbortSignal): Promise<EndpointsBody> {
    this.#follow()
    const now = this.#current()
    const isNews = seen === undefined || now.revision !== seen
    if (isNews || ms === 0 || !this.#options.mayWait || this.#isClosed || gone.aborted) return now
    if (this.#waiting.size >= MAX_GATEWAYS) {
      const detail = `Too many gateways are waiting (limit: ${MAX_GATEWAYS}). Try again in 5 s.`
      throw new ApiProblem('too_many_streams', detail, { headers: { 'retry-after': '5' } })
    }
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        gone.removeEventListener('abort', end)
        this.#waiting.delete(waiting)
        this.#stopLooking()
        resolve()
      }
      const waiting = { seen, end }
      const timer = setTimeout(end, ms)
      gone.addEventListener('abort', end, { once: true })
      this.#waiting.add(waiting)
      this.#timer ??= setInterval(() => this.#look(), LOOK_EVERY_MS)
    })
    return this.#current()
  }

  /** Answers all that wait. */
  close(): void {
    this.#isClosed = true
    this.#unsubscribe?.()
    for (const { end } of [...this.#waiting]) end()
  }

  #look(): void {
    const { revision } = this.#current()
    for (const { seen, end } of [...this.#waiting]) if (seen !== revision) end()
  }

  #stopLooking(): void {
    if (this.#waiting.size > 0 || this.#timer === null) return
    clearInterval(this.#timer)
    this.#timer = null
  }

  /** Follows changes from the first request on. */
  #follow(): void {
    if (this.#unsubscribe !== null || this.#isClosed) return
    const { views, source } = this.#options
    for (const task of views.openTasks()) this.#note(task)
    this.#unsubscribe = source.subscribe((events) => {
      this.#renewAt = 0
      for (const { taskId } of events) if (taskId !== null) this.#note(views.openTask(taskId))
    })
  }

  #note(task: Task | undefined): void {
    if (task !== undefined && servedPort(task.spec) !== null) this.#taskIds.add(task.spec.id)
  }

  #current(): EndpointsBody {
    if (this.#body !== null && performance.now() < this.#renewAt) return this.#body
    this.#renewAt = performance.now() + RENEW_AFTER_MS
    const content = {
      controller_hosts: [...this.#options.access.hosts.names],
      replicas: this.#replicas(),
      tokens: this.#tokens(),
    }
    const revision = createHash('sha256').update(JSON.stringify(content)).digest('hex')
    if (this.#body?.revision !== revision) this.#body = { revision, ...content }
    return this.#body
  }

  #replicas(): ReplicaBody[] {
    const replicas: ReplicaBody[] = []
    for (const id of this.#taskIds) {
      const task = this.#options.views.openTask(id)
      if (task === undefined) this.#taskIds.delete(id)
      else if (task.spec.owner !== null && replicas.length < MAX_REPLICAS)
        replicas.push(presentReplica(task, task.spec.owner))
    }
    return replicas
  }

  #tokens(): EndpointsBody['tokens'] {
    return [...(this.#options.access.book?.tokens() ?? [])]
      .filter(({ role }) => role === 'endpoint')
      .map(({ id, name, secretHash, expiresAt }) => ({
        id,
        sha256: secretHash,
        owner: name,
        expires_at: presentInstantOrNull(expiresAt),
      }))
  }
}

/** The port to which an endpoint leads; null: the task serves no HTTP. */
export function servedPort({
  ports = [],
  swapEngine,
}: Pick<TaskSpec, 'ports' | 'swapEngine'>): TaskPort | null {
  const isEngine = swapEngine !== undefined && swapEngine !== null
  return ports.find(({ protocol }) => isEngine || protocol === 'http') ?? null
}

function presentReplica(task: Task, owner: string): ReplicaBody {
  const { spec, attempt, placement } = task
  return {
    owner,
    name: spec.name,
    task_id: spec.id,
    attempt,
    state: task.state as ReplicaBody['state'],
    residency: placement?.residency ?? null,
    is_engine: spec.swapEngine !== undefined && spec.swapEngine !== null,
  }
}
