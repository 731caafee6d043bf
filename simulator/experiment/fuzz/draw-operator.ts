/**
 * Draws actions of an operator through the REST routes, and the expected answers that depend on nothing else.
 * At the end, settings are no stricter than at the start, every node takes tasks, and no task is on hold:
 * every task that could start before still can.
 */
import { nodeIdFromName } from '../../../protocol/node-id.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, Value } from './document.ts'
import { GROUPS, type DrawnNode } from './draw-fleet.ts'
import type { Features } from './features.ts'

export interface OperatorShape {
  /** The first half of an action comes before this time, the half that reverts it before `overMs`. */
  readonly untilMs: DurationMs
  readonly overMs: DurationMs
  readonly taskIds: readonly string[]
}

interface Ask {
  readonly dice: FuzzRandom
  readonly nodes: readonly DrawnNode[]
  readonly shape: OperatorShape
}

export function drawOperator(
  dice: FuzzRandom,
  nodes: readonly DrawnNode[],
  { on }: Features,
  shape: OperatorShape,
): Entry[] {
  const ask: Ask = { dice, nodes, shape }
  const deeds: ((ask: Ask) => Entry[])[] = []
  if (on.has('settings')) deeds.push(setConfig, setNode)
  if (on.has('closing')) deeds.push(cordon, drain)
  if (on.has('groups')) deeds.push(regroup)
  if (on.has('updates')) deeds.push(update, update)
  if (on.has('hands')) deeds.push(hold, swapByHand, swapByHand)
  if (on.has('requeues')) deeds.push(requeue, releaseFreeze)
  if (on.has('cancelling')) deeds.push(cancel)
  if (deeds.length === 0) return []
  const entries = Array.from({ length: dice.between(1, 8) }, () => dice.oneOf(deeds)(ask)).flat()
  return entries.toSorted((a, b) => msOf(a) - msOf(b))
}

/** The outcome depends on the state of the task at that time. */
const MAY_BE_REFUSED = { expect: null }

function msOf({ at }: Entry): number {
  return Number(String(at).replace('ms', ''))
}

function setConfig({ dice, shape }: Ask): Entry[] {
  const body = dice.oneOf<Entry>([
    { default_vram_overcommit_percent: dice.oneOf([0, 50, 300]) },
    { idle_swap_out_seconds: dice.oneOf([3, 10, 60]) },
    { max_residency_seconds: dice.oneOf([null, 20, 120]) },
    { placement_strategy: dice.oneOf(['best_fit', 'spread', 'fifo']) },
    { run_lease_seconds: dice.oneOf([15, 30]) },
  ])
  // A lease may be too short for the heartbeat of this seed.
  const judged = 'run_lease_seconds' in body ? MAY_BE_REFUSED : { expect: 200, answer: body }
  return [{ at: first(dice, shape), put: '/api/v1/config', body, ...judged }]
}

function setNode({ dice, nodes, shape }: Ask): Entry[] {
  const { name, entry } = dice.oneOf(nodes)
  const reserve = entry['safety_reserve_mib'] ?? null
  const put = `/api/v1/nodes/{node:${name}}/config`
  const set = (at: string, overcommit: Value, reserveMib: Value): Entry => {
    const body = { overcommit_vram_percent: overcommit, safety_reserve_mib: reserveMib }
    return { at, put, body, expect: 200, answer: body }
  }
  return [
    set(first(dice, shape), dice.oneOf([null, 0, 500]), dice.oneOf([200, 400])),
    set(second(dice, shape), entry['overcommit_vram_percent'] ?? null, reserve),
  ]
}

function cordon({ dice, nodes, shape }: Ask): Entry[] {
  const path = `/api/v1/nodes/{node:${dice.oneOf(nodes).name}}`
  return [
    { at: first(dice, shape), post: `${path}/cordon`, expect: 200 },
    { at: second(dice, shape), post: `${path}/uncordon`, expect: 200 },
  ]
}

function drain({ dice, nodes, shape }: Ask): Entry[] {
  const path = `/api/v1/nodes/{node:${dice.oneOf(nodes).name}}`
  const query = dice.oneOf(['', '?requeue=true', '?requeue=true&after_seconds=20'])
  return [
    { at: first(dice, shape), post: `${path}/drain${query}`, expect: 202 },
    { at: second(dice, shape), post: `${path}/uncordon`, expect: 200 },
  ]
}

/** Also reverts to the value of the fleet, at the end. */
function regroup({ dice, nodes, shape }: Ask): Entry[] {
  const group = dice.oneOf(GROUPS)
  const put = `/api/v1/groups/${group}`
  const members = (names: readonly DrawnNode[]): Value => ({
    node_ids: names.map(({ name }) => nodeIdFromName(name)),
  })
  const before = nodes.filter(({ groups }) => groups.includes(group))
  return [
    { at: first(dice, shape), put, body: members(dice.some(nodes, 50)), ...MAY_BE_REFUSED },
    { at: `${shape.overMs}ms`, put, body: members(before), expect: 200 },
  ]
}

function update({ dice, shape }: Ask): Entry[] {
  const body = dice.oneOf<Entry>([
    { priority: dice.oneOf([0, 1, 3]) },
    { noswap: dice.oneOf([0, 1]) },
    { vram_mib: dice.between(50, 800) },
  ])
  return [
    { at: first(dice, shape), patch: `/api/v1/tasks/${dice.oneOf(shape.taskIds)}`, body, ...MAY_BE_REFUSED },
  ]
}

function hold({ dice, shape }: Ask): Entry[] {
  const path = `/api/v1/tasks/${dice.oneOf(shape.taskIds)}`
  return [
    { at: first(dice, shape), post: `${path}/hold`, ...MAY_BE_REFUSED },
    { at: second(dice, shape), post: `${path}/release`, ...MAY_BE_REFUSED },
  ]
}

function swapByHand({ dice, shape }: Ask): Entry[] {
  const deed = dice.oneOf(['swap-out', 'swap-in'])
  return [
    { at: first(dice, shape), post: `/api/v1/tasks/${dice.oneOf(shape.taskIds)}/${deed}`, ...MAY_BE_REFUSED },
  ]
}

function requeue({ dice, shape }: Ask): Entry[] {
  const body = dice.chance(40) ? { confirm_fenced: true } : {}
  return [
    {
      at: first(dice, shape),
      post: `/api/v1/tasks/${dice.oneOf(shape.taskIds)}/requeue`,
      body,
      ...MAY_BE_REFUSED,
    },
  ]
}

function releaseFreeze({ dice, shape }: Ask): Entry[] {
  return [{ at: first(dice, shape), post: '/api/v1/cluster/requeue-freeze/release', expect: 200 }]
}

function cancel({ dice, shape }: Ask): Entry[] {
  return [{ at: first(dice, shape), delete: `/api/v1/tasks/${dice.oneOf(shape.taskIds)}`, ...MAY_BE_REFUSED }]
}

function first(dice: FuzzRandom, { untilMs }: OperatorShape): string {
  return `${dice.below(untilMs)}ms`
}

function second(dice: FuzzRandom, { untilMs, overMs }: OperatorShape): string {
  return `${dice.between(untilMs, overMs)}ms`
}
