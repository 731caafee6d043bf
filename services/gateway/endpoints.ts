/** Endpoints and tokens as the controller said last; both stay while it does not answer. */
import { idIn, isSecretOf } from '../../controller/api/auth/token-secrets.ts'
import type { EndpointsBody, ReplicaBody } from '../../controller/api/endpoints/schema.ts'
import { Endpoint } from './endpoint.ts'
import { Replica, type ReplicaAddress } from './replica.ts'

interface EndpointToken {
  readonly id: string
  readonly owner: string
  readonly sha256: string
  readonly expiresAt: number | null
}

interface EndpointsOptions {
  readonly maxKeptBytes: number
  readonly find: (replica: Replica) => Promise<ReplicaAddress | null>
}

export class Endpoints {
  readonly #options: EndpointsOptions
  readonly #endpoints = new Map<string, Endpoint>()
  #tokens: ReadonlyMap<string, EndpointToken> = new Map()

  constructor(options: EndpointsOptions) {
    this.#options = options
  }

  all(): Iterable<Endpoint> {
    return this.#endpoints.values()
  }

  /** Undefined: no task of that name is open. */
  find(owner: string, name: string): Endpoint | undefined {
    const endpoint = this.#endpoints.get(keyOf(owner, name))
    return endpoint !== undefined && endpoint.replicas.size > 0 ? endpoint : undefined
  }

  /** The token of `Authorization: Bearer …`; null: it is unknown, revoked or expired. */
  authenticate(authorization: string | undefined): EndpointToken | null {
    const secret = /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1]
    if (secret === undefined) return null
    const token = this.#tokens.get(idIn(secret) ?? '')
    return isSecretOf(secret, token?.sha256 ?? null) && token !== undefined && isCurrent(token) ? token : null
  }

  /** Neither revoked nor expired since. */
  isGood(tokenId: string): boolean {
    const token = this.#tokens.get(tokenId)
    return token !== undefined && isCurrent(token)
  }

  update({ replicas, tokens }: Pick<EndpointsBody, 'replicas' | 'tokens'>): void {
    this.#tokens = new Map(
      tokens.map(({ id, owner, sha256, expires_at: at }) => [
        id,
        { id, owner, sha256, expiresAt: at === null ? null : Date.parse(at) },
      ]),
    )
    const listed = new Set<Replica>()
    for (const body of replicas) listed.add(this.#replicaOf(body))
    for (const endpoint of this.#endpoints.values()) endOthers(endpoint, listed)
    this.prune()
    for (const endpoint of this.#endpoints.values()) {
      endpoint.emptySince = endpoint.replicas.size > 0 ? null : (endpoint.emptySince ?? performance.now())
      endpoint.wakeAll()
    }
  }

  /** Forgets endpoints without tasks and requests. */
  prune(): void {
    for (const [key, { replicas, calls }] of this.#endpoints)
      if (replicas.size === 0 && calls.size === 0) this.#endpoints.delete(key)
  }

  #replicaOf(body: ReplicaBody): Replica {
    const key = keyOf(body.owner, body.name)
    let endpoint = this.#endpoints.get(key)
    if (endpoint === undefined) {
      endpoint = new Endpoint(body.owner, body.name, this.#options.maxKeptBytes)
      this.#endpoints.set(key, endpoint)
    }
    let replica = endpoint.replicas.get(body.task_id)
    if (replica === undefined || replica.attempt !== body.attempt) {
      if (replica !== undefined) replica.goneSince ??= performance.now()
      replica = new Replica(body, this.#options.find)
      endpoint.replicas.set(body.task_id, replica)
    }
    replica.body = body
    replica.goneSince = body.state === 'unreachable' ? (replica.goneSince ?? performance.now()) : null
    return replica
  }
}

function endOthers({ replicas }: Endpoint, listed: ReadonlySet<Replica>): void {
  for (const [taskId, replica] of replicas) {
    if (listed.has(replica)) continue
    replica.goneSince ??= performance.now()
    replicas.delete(taskId)
  }
}

function isCurrent({ expiresAt }: EndpointToken): boolean {
  return expiresAt === null || Date.now() < expiresAt
}

function keyOf(owner: string, name: string): string {
  return JSON.stringify([owner, name])
}
