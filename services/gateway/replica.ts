/** An attempt of a task that serves an endpoint. */
import type { ReplicaBody } from '../../controller/api/endpoints/schema.ts'

/** A replica without an address, or on whose port nothing listens, is left alone for so long. */
const REST_MS = 250
/** The proxy of a task on whose port nothing listens says so as soon as a connection is made. */
export const PROVEN_AFTER_MS = 500

export interface ReplicaAddress {
  readonly host: string
  readonly port: number
}

export class Replica {
  readonly taskId: string
  readonly attempt: number
  /** Where the controller saw it last. */
  body: ReplicaBody
  /** Requests that it has, and the open connections that were upgraded. */
  outstanding = 0
  /** It has answered, or was not refused: until then it gets one request at a time. */
  isProven = false
  /** It is in no table any more, or its node is silent, since then. */
  goneSince: number | null = null
  /** When it got its latest request: a count, not a time. */
  lastTurn = 0
  #restsUntil = 0
  readonly #find: (replica: Replica) => Promise<ReplicaAddress | null>
  #address: Promise<ReplicaAddress | null> | null = null

  constructor(body: ReplicaBody, find: (replica: Replica) => Promise<ReplicaAddress | null>) {
    this.taskId = body.task_id
    this.attempt = body.attempt
    this.body = body
    this.#find = find
  }

  /** Its data is in VRAM: it can answer now. */
  get isIn(): boolean {
    return this.body.residency === 'resident'
  }

  mayTake(now: number): boolean {
    if (this.body.state !== 'running' || this.goneSince !== null || now < this.#restsUntil) return false
    return this.isProven || this.outstanding === 0
  }

  /** Requests the address once, and again after a refused connection. */
  address(): Promise<ReplicaAddress | null> {
    this.#address ??= this.#find(this).then((found) => {
      if (found === null) this.rest()
      return found
    })
    return this.#address
  }

  /** It could not be reached: it may have another address, and is not asked again at once. */
  rest(): void {
    this.isProven = false
    this.#address = null
    this.#restsUntil = performance.now() + REST_MS
  }
}

/** `10.0.0.12:30100` and `[fd00::1]:30100`. */
export function addressIn(text: string): ReplicaAddress | null {
  const [, ip6, ip4, port] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):(\d{1,5})$/i.exec(text) ?? []
  const host = ip6 ?? ip4
  return host === undefined ? null : { host, port: Number(port) }
}
