/** Converts a task's `state` to a TaskStart and checks it against the fleet and the other tasks. */
import type { Mib, NoSwap } from '../../protocol/units.ts'
import { nearestName } from '../document/nearest-name.ts'
import type { Refuse } from '../document/refusal.ts'
import type { PlacedStart, ScenarioNode, TaskItem, TaskStart, WorkloadItem } from './scenario.ts'
import type { startRule } from './schema-start.ts'
import type { ValueOf } from '../document/rule.ts'

export type StartFields = ValueOf<typeof startRule>
type PlacedFields = NonNullable<StartFields['placed']>

/** The request of the task. */
export interface StartRequest {
  readonly vramMib: Mib | null
  readonly noswap: NoSwap
}

export function startOf(state: StartFields, request: StartRequest): TaskStart {
  const { placed } = state
  const firstStartedAgoMs = state.first_started_ago ?? placed?.started_ago ?? null
  return {
    number: state.number,
    submittedAgoMs: Math.max(state.submitted_ago, firstStartedAgoMs ?? 0),
    waitedMs: state.waited ?? state.submitted_ago,
    isHeld: state.held,
    attempt: state.attempt ?? (placed === null ? 0 : 1),
    swapOuts: state.swap_outs,
    firstStartedAgoMs,
    placed: placed === null ? null : placedOf(placed, request),
  }
}

function placedOf(placed: PlacedFields, request: StartRequest): PlacedStart {
  const residentForMs = placed.resident_for ?? placed.started_ago
  return {
    node: placed.node,
    gpus: placed.gpus,
    demandMib: placed.vram_mib ?? request.vramMib ?? 0,
    noswap: placed.noswap ?? request.noswap,
    residency: placed.residency,
    residualMib: placed.residual_mib,
    startedAgoMs: placed.started_ago,
    residentForMs,
    idleForMs: placed.idle_for,
    wantsForMs: placed.wants_for ?? placed.idle_for ?? residentForMs,
    askedAgoMs: placed.asked_ago,
    isCalledBack: placed.called_back,
    outForMs: placed.out_for,
    isSentAway: placed.sent_away,
    growth:
      placed.growth === null ? null : { mib: placed.growth.vram_mib, askedAgoMs: placed.growth.asked_ago },
    backOffMs: placed.back_off,
    marks: placed.gpus.map((_, index) => {
      const mark = placed.marks[index] ?? null
      return mark === null ? null : { isThisRound: mark.this_round, decision: mark.decision }
    }),
    doneUs: placed.done_us,
  }
}

/** Checks that nodes and GPUs exist, resident tasks fit in VRAM, and numbers are unique. */
export function refuseImpossibleStarts(
  items: readonly WorkloadItem[],
  nodes: readonly ScenarioNode[],
  refuse: Refuse,
): void {
  const byName = new Map(nodes.map((node) => [node.name, node]))
  const itemOfNumber = new Map<number, number>()
  const vram = new Map<string, Mib>()
  for (const [index, item] of items.entries()) {
    if (item.kind !== 'task' || item.state === undefined) continue
    const place = ['workload', index, 'task', 'state']
    const { number, placed } = item.state
    if (item.atMs !== 0) refuse(place, 'is of a task that is there at the start; at must be 0')
    const earlier = number === null ? undefined : itemOfNumber.get(number)
    if (earlier !== undefined)
      refuse([...place, 'number'], `${number} is the number of workload[${earlier}], too`)
    if (number !== null) itemOfNumber.set(number, index)
    if (placed !== null) refuseImpossiblePlace(item, placed, [...place, 'placed'], { byName, vram, refuse })
  }
}

interface Known {
  readonly byName: ReadonlyMap<string, ScenarioNode>
  /** Resident MiB by node and GPU. */
  readonly vram: Map<string, Mib>
  readonly refuse: Refuse
}

function refuseImpossiblePlace(
  { request }: TaskItem,
  placed: PlacedStart,
  place: (string | number)[],
  { byName, vram, refuse }: Known,
): void {
  const node = byName.get(placed.node)
  if (node === undefined) {
    const near = nearestName(placed.node, [...byName.keys()].slice(0, 1000))
    return refuse(
      [...place, 'node'],
      `the fleet has no node ${placed.node}${near === null ? '' : `; did you mean ${near}?`}`,
    )
  }
  if (placed.gpus.length !== request.gpuCount)
    refuse([...place, 'gpus'], `are ${placed.gpus.length}; the task has ${request.gpuCount}`)
  if (placed.residency === 'swapped_out' && placed.noswap === 1)
    refuse([...place, 'residency'], 'a noswap task is never swapped out')
  if (placed.residualMib > placed.demandMib)
    refuse([...place, 'residual_mib'], `is more than the ${placed.demandMib} MiB that it has`)
  for (const gpu of placed.gpus) {
    if (gpu >= node.gpuCount)
      return refuse(
        [...place, 'gpus'],
        `${placed.node} has GPUs 0 to ${node.gpuCount - 1}, none of number ${gpu}`,
      )
    if (placed.residency !== 'resident') continue
    const key = `${placed.node}/${gpu}`
    const mib = (vram.get(key) ?? 0) + placed.demandMib
    vram.set(key, mib)
    if (mib > node.gpu.vramMib)
      refuse([...place, 'gpus'], `GPU ${gpu} of ${placed.node} would hold ${mib} MiB of ${node.gpu.vramMib}`)
  }
}
