/** Swap marks of pods between the rounds of a term and the agents, which keep them for the next term. */
import { ROUND_FIELDS, VICTIM_CLASSES, type VictimClass } from '../../controller/model/victim-class.ts'
import type { GpuRecord } from '../../controller/ports/store.ts'
import type { SwapMark } from '../../protocol/agent-messages.ts'

/** A GPU of the controller, with what its rounds count. */
interface MarkedGpu {
  readonly rounds: Readonly<Record<VictimClass, { readonly marks: ReadonlyMap<string, RoundMark> }>>
}

interface RoundMark {
  readonly round: number
  readonly lastSwapOut: number | null
}

/** What is known about one node. */
export interface KeptMarks {
  /** By UID. */
  readonly pods: ReadonlyMap<string, readonly SwapMark[]>
  /** The latest of each GPU and class, also of pods that have ended: they say which round it is. */
  readonly latest: readonly SwapMark[]
}

/** Returns the marks of a pod on the GPUs of its node, which are the same in both lists. */
export function marksOf(
  podUid: string,
  declared: readonly { readonly uuid: string }[],
  gpus: readonly MarkedGpu[],
): readonly SwapMark[] {
  return gpus.flatMap(({ rounds }, place) =>
    VICTIM_CLASSES.flatMap((victimClass): SwapMark[] => {
      const { round = 0, lastSwapOut = null } = rounds[victimClass].marks.get(podUid) ?? {}
      return lastSwapOut === null
        ? []
        : [{ gpu: declared[place]?.uuid ?? '', class: victimClass, round, decision: lastSwapOut }]
    }),
  )
}

/** Returns the rounds and marks of a GPU for the store with which a term begins. */
export function recordedMarks(uuid: string, { pods, latest }: KeptMarks): RecordedMarks {
  const roundOf = (victimClass: VictimClass): number =>
    latest.find((mark) => mark.gpu === uuid && mark.class === victimClass)?.round ?? 0
  const rounds = VICTIM_CLASSES.map((each) => [ROUND_FIELDS[each], roundOf(each)] as const)
  return {
    ...(Object.fromEntries(rounds) as Omit<RecordedMarks, 'marks'>),
    marks: [...pods].flatMap(([taskId, marks]) =>
      marks
        .filter(({ gpu }) => gpu === uuid)
        .map(({ class: victimClass, round, decision: lastSwapOut }) => {
          return { taskId, class: victimClass, round, lastSwapOut }
        }),
    ),
  }
}

type RecordedMarks = Required<Pick<GpuRecord, (typeof ROUND_FIELDS)[VictimClass] | 'marks'>>

/** The number of the next decision: greater than all that agents know. */
export function nextDecision(nodes: readonly KeptMarks[]): number {
  const latest = nodes.flatMap((node) => node.latest)
  return latest.reduce((next, { decision }) => Math.max(next, decision + 1), 1)
}
