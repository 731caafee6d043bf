/** The nodes with which a term begins: the controller awaits a report of each. */
import { EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import type { NodeRecord } from '../../controller/ports/store.ts'
import type { NodeLimits } from '../../operator/placing/claims.ts'
import type { DeclaredGpu } from '../../operator/placing/declared-gpus.ts'
import { type KeptMarks, nextDecision, recordedMarks } from '../../operator/placing/swap-marks.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { Instant, Mib } from '../../protocol/units.ts'

/** The same for the record and the hello of a node. A pod that is out cannot say that it wants the GPU. */
export const NODE_KIND = { device: 'nvidia', signalsWanted: false, allowExec: true } as const

export interface RecoveredNode {
  readonly name: string
  readonly gpus: readonly DeclaredGpu[]
  readonly limits: NodeLimits
  readonly hostSwapMib: Mib
  /** As its agent has kept them. */
  readonly marks: KeptMarks
}

export function inRecovery(nodes: readonly RecoveredNode[], now: Instant) {
  const records = nodes.map(({ name, gpus, limits, hostSwapMib, marks }, ordinal): NodeRecord => {
    const { percent, reserveMib } = limits
    return {
      ...{ id: nodeIdFromName(name), name, address: name, ordinal, isCordoned: false, drain: null },
      ...{ overcommitOverride: percent, reserveOverrideMib: reserveMib, ...NODE_KIND },
      ...{ hostSwapMib, registeredAt: now, lastSeenAt: now },
      ...{ bootCounter: 0, bootRandom: '', leaseMs: 0, wasReset: false },
      gpus: gpus.map(({ uuid, model, vramMib: physicalMib }, index) => {
        return { index, model, physicalMib, foreignMib: 0 as Mib, ...recordedMarks(uuid, marks) }
      }),
    }
  })
  const decision = nextDecision(nodes.map(({ marks }) => marks))
  return {
    nodes: records,
    recovery: { reason: 'restored' as const, sinceWallMs: now },
    marks: { ...EMPTY_STATE.marks, nextDecision: decision },
  }
}
