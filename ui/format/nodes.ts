/** Texts for nodes, from their API objects. Pure. */
import type { NodeBody } from '../../controller/api/nodes/schema.ts'
import { mib, plural } from './figures.ts'

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
      ? [drain.tasks_left === 0 ? 'drained' : `draining: ${plural(drain.tasks_left, 'task', 'tasks')} left`]
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
 * The problems of a node, worst first; empty: none. A node that is ahead of the store sends heartbeats, but
 * receives no command.
 */
export function troubleWords(
  { status, cordoned, drain, vram, ...node }: NodeState & Pick<NodeBody, 'vram'>,
  isAhead = false,
): readonly string[] {
  const { auto_cordon: closed = null, quarantined_attempts: quarantined = 0 } = node
  return [
    ...(isAhead ? ['ahead of the store, receives no commands'] : []),
    ...(closed === null ? [] : [`cannot start tasks: ${closed.reason}`]),
    ...(status === 'unreachable' ? ['unreachable, as are all its tasks'] : []),
    ...(status === 'suspect' && !isAhead ? ['silent, receives no new tasks'] : []),
    ...(quarantined > 0
      ? [`${plural(quarantined, 'quarantined attempt', 'quarantined attempts')} not in the store`]
      : []),
    ...(vram.reserve_deficit_mib > 0 ? [`reserve deficit ${mib(vram.reserve_deficit_mib)}`] : []),
    ...(vram.over_committed_mib > 0 ? [`over-committed by ${mib(vram.over_committed_mib)}`] : []),
    ...(drain !== null
      ? [drain.tasks_left === 0 ? 'drained' : `draining: ${plural(drain.tasks_left, 'task', 'tasks')} left`]
      : cordoned
        ? ['cordoned']
        : []),
  ]
}

/** Conditions that the summary counts, worst first. */
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
  silent: 'silent',
  auto_cordoned: 'cannot start tasks',
  quarantined: 'with quarantined attempts',
  reserve_breached: 'with a reserve deficit',
  over_limit: 'over the commit limit',
  draining: 'draining',
  cordoned: 'cordoned',
}

export function conditionWords(condition: (typeof CONDITIONS)[number]): string {
  return CONDITION_WORDS[condition]
}

/** `4 × A100-40`; several models are listed. */
export function gpuModels({ gpus }: { readonly gpus: readonly { readonly model: string }[] }): string {
  const byModel = Map.groupBy(gpus, ({ model }) => model)
  return [...byModel].map(([model, ofModel]) => `${ofModel.length} × ${model}`).join(', ')
}

/** Empty: the common pool. */
export function groupWords(groups: readonly string[]): string {
  return groups.length === 0 ? 'common pool' : groups.join(', ')
}
