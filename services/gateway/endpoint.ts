/** The open tasks of one owner that have one name, and the requests for them. */
import type { KeptBytes } from './request-body.ts'
import type { Replica } from './replica.ts'

/** A request from its arrival to its end. */
export interface Call {
  /** null: it waits for one. */
  readonly replica: Replica | null
  /** The head of an answer has arrived. */
  readonly isAnswered: boolean
  /** Something has changed that it may wait for. */
  wake(): void
}

export class Endpoint {
  readonly owner: string
  readonly name: string
  readonly replicas = new Map<string, Replica>()
  readonly calls = new Set<Call>()
  readonly kept: KeptBytes
  /** None of its tasks is open, since then; one of the same name may be submitted. */
  emptySince: number | null = null
  #turns = 0

  constructor(owner: string, name: string, maxKeptBytes: number) {
    this.owner = owner
    this.name = name
    this.kept = { used: 0, max: maxKeptBytes }
  }

  get isEngine(): boolean {
    for (const { body } of this.replicas.values()) if (body.is_engine) return true
    return false
  }

  /** A replica has its data in VRAM. */
  get isIn(): boolean {
    for (const { isIn, goneSince } of this.replicas.values()) if (isIn && goneSince === null) return true
    return false
  }

  get held(): number {
    let count = 0
    for (const call of this.calls) if (isHeld(call)) count += 1
    return count
  }

  /**
   * Takes a replica for one more request. The order:
   * 1. Its data is in VRAM, then on its way in, then out.
   * 2. It has fewer outstanding requests.
   * 3. Its latest request is longer ago.
   */
  take(): Replica | null {
    const now = performance.now()
    let best: Replica | null = null
    for (const replica of this.replicas.values())
      if (replica.mayTake(now) && (best === null || isBefore(replica, best))) best = replica
    if (best === null) return null
    best.outstanding += 1
    best.lastTurn = this.#turns += 1
    return best
  }

  give(replica: Replica): void {
    replica.outstanding -= 1
    this.wakeAll()
  }

  wakeAll(): void {
    for (const call of this.calls) call.wake()
  }
}

/** Nothing answers it yet, and nothing that could is in VRAM. */
export function isHeld({ replica, isAnswered }: Call): boolean {
  return !isAnswered && (replica === null || !replica.isIn)
}

function isBefore(a: Replica, b: Replica): boolean {
  const order = rankOf(a) - rankOf(b) || a.outstanding - b.outstanding || a.lastTurn - b.lastTurn
  return order < 0
}

function rankOf({ body }: Replica): number {
  switch (body.residency) {
    case 'resident':
      return 0
    case 'swapping_in':
      return 1
    case 'swapped_out':
    case 'swapping_out':
    case 'none':
    case null:
      return 2
  }
}
