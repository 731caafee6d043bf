/** What tables and pages say of a node, from its answer. Pure. */
import type { NodeBody } from '../../controller/api/schema/node.ts'
import { mib } from './figures.ts'

type NodeState = Pick<NodeBody, 'status' | 'cordoned' | 'drain'> &
  Partial<Pick<NodeBody, 'auto_cordon' | 'quarantined_attempts'>>

/**
 * `up, cordoned`; `up, draining: 3 tasks left`; `up, auto-cordoned`; `suspect, ahead of the store`; `up, 2
 * quarantined attempts`.
 */
export function statusWords({ status, cordoned, drain, ...node }: NodeState, isAhead = false): string {
  const { auto_cordon: closed = null, quarantined_attempts: quarantined = 0 } = node
  const openness =
    drain !== null
      ? [drain.tasks_left === 0 ? 'drained' : `draining: ${drain.tasks_left} tasks left`]
      : closed !== null
        ? ['auto-cordoned']
        : cordoned
          ? ['cordoned']
          : []
  return [
    status,
    ...(isAhead ? ['ahead of the store'] : []),
    ...openness,
    ...(quarantined > 0 ? [`${quarantined} quarantined ${quarantined === 1 ? 'attempt' : 'attempts'}`] : []),
  ].join(', ')
}

/**
 * What is wrong with a node, the worst first; empty: nothing is. A node that is ahead of the store is heard,
 * but gets no answer.
 */
export function troubleWords(
  { status, cordoned, drain, vram, ...node }: NodeState & Pick<NodeBody, 'vram'>,
  isAhead = false,
): readonly string[] {
  const { auto_cordon: closed = null, quarantined_attempts: quarantined = 0 } = node
  return [
    ...(isAhead ? ['ahead of the store, gets no command'] : []),
    ...(closed === null ? [] : [`cannot start tasks: ${closed.reason}`]),
    ...(status === 'unreachable' ? ['does not answer, its tasks are out of reach'] : []),
    ...(status === 'suspect' && !isAhead ? ['silent, takes no new task'] : []),
    ...(quarantined > 0 ? [`${quarantined} attempts in quarantine: unknown to the store`] : []),
    ...(vram.reserve_deficit_mib > 0 ? [`${mib(vram.reserve_deficit_mib)} missing from the reserve`] : []),
    ...(vram.over_committed_mib > 0 ? [`${mib(vram.over_committed_mib)} promised beyond the limit`] : []),
    ...(drain !== null
      ? [drain.tasks_left === 0 ? 'drained' : `draining: ${drain.tasks_left} tasks left`]
      : cordoned
        ? ['cordoned']
        : []),
  ]
}

/** Conditions that the summary counts, the worst first. */
export const CONDITIONS = [
  'silent',
  'auto_cordoned',
  'quarantined',
  'reserve_breached',
  'over_limit',
  'draining',
  'cordoned',
] as const

const CONDITION_WORDS: Readonly<Record<(typeof CONDITIONS)[number], string>> = {
  silent: 'do not answer',
  auto_cordoned: 'cannot start tasks',
  quarantined: 'with unknown attempts',
  reserve_breached: 'short of their reserve',
  over_limit: 'over their commit limit',
  draining: 'draining',
  cordoned: 'cordoned',
}

export function conditionWords(condition: (typeof CONDITIONS)[number]): string {
  return CONDITION_WORDS[condition]
}

/** `4 × A100-40`; several models one after the other. */
export function gpuModels({ gpus }: { readonly gpus: readonly { readonly model: string }[] }): string {
  const byModel = Map.groupBy(gpus, ({ model }) => model)
  return [...byModel].map(([model, ofModel]) => `${ofModel.length} × ${model}`).join(', ')
}

/** Empty: the common pool. */
export function groupWords(groups: readonly string[]): string {
  return groups.length === 0 ? 'common pool' : groups.join(', ')
}
