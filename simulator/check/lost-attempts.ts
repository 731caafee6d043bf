/**
 * Attempts that run although the store no longer knows them, and those of them in quarantine. Derived from
 * events alone.
 */
import type { Event } from '../../controller/model/event.ts'
import type { StoredState } from '../../controller/ports/store.ts'
import type { Mib } from '../../protocol/units.ts'

/** An attempt that the controller placed before its store went back. */
export interface LostAttempt {
  readonly taskId: string
  readonly attempt: number
  readonly nodeId: string
}

/** VRAM that a quarantined attempt takes on each of its GPUs. */
interface QuarantinedBytes {
  readonly nodeId: string
  readonly gpus: readonly number[]
  readonly vramMib: Mib
}

/** On one node. */
interface Room {
  readonly nodeId: string
  readonly gpuCount: number
  /** On each GPU. */
  readonly capacityMib: Mib
}

export class LostAttempts {
  /** Attempts that the store has lost and that are not settled. */
  readonly #lost = new Map<string, LostAttempt>()
  readonly #quarantined = new Map<string, QuarantinedBytes>()

  /**
   * A store that goes back behind an earlier loss may have given up an attempt whose number was used again
   * since: it knows that attempt, and ends it.
   * @param placed attempts that were placed before the store went back
   */
  setBack(placed: readonly LostAttempt[], stored: StoredState): void {
    for (const one of placed) this.#lost.set(keyOf(one), one)
    const givenUp = new Map<string, number>()
    for (const { id, attempt, placement } of stored.openTasks) {
      if (placement === null) givenUp.set(id, attempt)
      else this.#lost.delete(keyOf({ taskId: id, attempt, nodeId: placement.nodeId }))
    }
    for (const [key, { taskId, attempt }] of this.#lost)
      if (attempt <= (givenUp.get(taskId) ?? 0)) this.#lost.delete(key)
    this.#quarantined.clear()
    for (const { id: nodeId, quarantine = [] } of stored.nodes)
      for (const one of quarantine) this.#quarantined.set(keyOf({ nodeId, ...one }), { nodeId, ...one })
  }

  /** Returns true for events of attempts that belong to no task. */
  apply({ kind, nodeId, taskId, data }: Event): boolean {
    if (nodeId === null) return false
    const ref = { nodeId, taskId: (taskId ?? data['task']) as string, attempt: data['attempt'] as number }
    const key = keyOf(ref)
    if (kind === 'task_placed' || kind === 'attempt_settled') {
      this.#lost.delete(key)
      if (data['how'] !== 'stop_ordered') this.#quarantined.delete(key)
    } else if (kind === 'attempt_quarantined')
      this.#quarantined.set(key, {
        nodeId,
        gpus: data['gpus'] as readonly number[],
        vramMib: data['vram_mib'] as Mib,
      })
    return kind === 'attempt_settled' || kind === 'attempt_quarantined'
  }

  isLost(one: LostAttempt): boolean {
    return this.#lost.has(keyOf(one))
  }

  isQuarantined(one: LostAttempt): boolean {
    return this.#quarantined.has(keyOf(one))
  }

  /** Nodes that may run lost attempts of the task. */
  nodesOf(taskId: string): ReadonlySet<string> {
    const nodes = new Set<string>()
    for (const one of this.#lost.values()) if (one.taskId === taskId) nodes.add(one.nodeId)
    return nodes
  }

  /**
   * GPUs on which quarantined attempts leave less than this VRAM; for an exclusive task, all with such an
   * attempt.
   */
  takenGpus({ nodeId, gpuCount, capacityMib }: Room, needMib: Mib): number {
    if (this.#quarantined.size === 0) return 0
    let taken = 0
    for (let gpu = 0; gpu < gpuCount; gpu++) {
      let mib = 0
      for (const one of this.#quarantined.values())
        if (one.nodeId === nodeId && one.gpus.includes(gpu)) mib += one.vramMib
      if (mib > 0 && needMib > capacityMib - mib) taken += 1
    }
    return taken
  }
}

function keyOf({ nodeId, taskId, attempt }: LostAttempt): string {
  return `${nodeId}/${taskId}/${attempt}`
}
