/** Swap marks in a store: by task and GPU, with the round of the class there (semantics 5). */
import type { StoredState } from '../../controller/ports/store.ts'
import { classOfRequest, type VictimClass } from './swap-decision.ts'

/** Where a record of a GPU has the round of each class. */
const ROUNDS = {
  non_p0: 'roundNonP0',
  non_p0_warm: 'roundNonP0Warm',
  p0: 'roundP0',
  p0_warm: 'roundP0Warm',
} as const

export interface StoredMark {
  readonly taskId: string
  readonly nodeId: string
  readonly gpu: number
  readonly victimClass: VictimClass
  /** It was swapped out in the current round. */
  readonly isSwapped: boolean
  /** Decision of its last swap-out; null: never. */
  readonly lastSwapOut: number | null
}

export function storedMarks({ openTasks, nodes }: StoredState): readonly StoredMark[] {
  const gpus = new Map(nodes.map(({ id, gpus: records }) => [id, records]))
  return openTasks.flatMap(({ id, priority, keepWarm, placement }) =>
    (placement?.gpus ?? []).map((gpu, place): StoredMark => {
      const nodeId = placement?.nodeId ?? ''
      const mark = placement?.marks[place] ?? null
      const record = gpus.get(nodeId)?.[gpu]
      const victimClass = classOfRequest({ priority, keepWarm })
      const round = record?.[ROUNDS[victimClass]] ?? 0
      return {
        taskId: id,
        nodeId,
        gpu,
        victimClass,
        isSwapped: mark !== null && mark.round === round,
        lastSwapOut: mark?.lastSwapOut ?? null,
      }
    }),
  )
}
