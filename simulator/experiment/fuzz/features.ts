/**
 * Swarm testing: each seed omits a random part of the features, so that the remaining ones occur often and
 * together (Groce, Zhang, Eide, Chen, Regehr: Swarm Testing, ISSTA 2012).
 */
import { SWARM_KINDS, type FaultKind } from '../../scenario/fault.ts'
import type { FuzzRandom } from './fuzz-random.ts'

const FLEET_FEATURES = [
  'several_nodes',
  'several_gpus',
  'node_groups',
  'node_settings',
  'little_host_memory',
  'slow_copies',
] as const
const CONFIG_FEATURES = [
  'max_residency',
  'queue_aging',
  'strategy',
  'few_seats',
  'quick_waits',
  'reserve',
] as const
const WORKLOAD_FEATURES = [
  'priorities',
  'noswap',
  'exclusive',
  'multi_gpu',
  'growth',
  'target_groups',
  'cancels',
  'runtimes',
  'policies',
  'bursts',
  'crowd',
] as const
const OPERATOR_FEATURES = [
  'settings',
  'closing',
  'groups',
  'updates',
  'hands',
  'requeues',
  'cancelling',
] as const

/** From a separate random stream: the other draws of a seed do not depend on it. */
const SIGNAL_FEATURE = 'no_signals'
const NO_SIGNALS_PERCENT = 33

/** From a separate random stream too. */
const STOP_FEATURE = 'stop_graces'
const STOP_GRACES_PERCENT = 40

/** From a separate random stream too. */
const LIMIT_FEATURE = 'few_attempts'
const FEW_ATTEMPTS_PERCENT = 25

/** From a separate random stream too; it is a fault, so it occurs only with others. */
export const SET_BACK_FEATURE = 'store_set_back'
const SET_BACK_PERCENT = 4

/** From a separate random stream too: tasks move their data themselves, and some keep a part or misbehave. */
export const HOOK_FEATURE = 'hooks'
const HOOKS_PERCENT = 10

/** From a separate random stream too: tasks with keep_warm, and with idle periods of their own. */
export const WARM_FEATURE = 'keep_warm'
const WARM_PERCENT = 10

/** From a separate random stream too; it brings faults of its own, so it occurs only with others. */
export const PAIR_FEATURE = 'two_controllers'
/** A tenth of all seeds, since many have no faults. */
const PAIR_PERCENT = 17

export type Feature =
  | typeof PAIR_FEATURE
  | typeof WARM_FEATURE
  | typeof HOOK_FEATURE
  | typeof SET_BACK_FEATURE
  | typeof SIGNAL_FEATURE
  | typeof STOP_FEATURE
  | typeof LIMIT_FEATURE
  | (typeof FLEET_FEATURES)[number]
  | (typeof CONFIG_FEATURES)[number]
  | (typeof WORKLOAD_FEATURES)[number]
  | (typeof OPERATOR_FEATURES)[number]

export interface Features {
  readonly on: ReadonlySet<Feature>
  readonly faults: readonly FaultKind[]
}

const ALL: readonly Feature[] = [...FLEET_FEATURES, ...CONFIG_FEATURES, ...WORKLOAD_FEATURES]
/** All features besides the kinds of faults. */
export const FEATURES: readonly Feature[] = [
  ...ALL,
  ...OPERATOR_FEATURES,
  SIGNAL_FEATURE,
  STOP_FEATURE,
  LIMIT_FEATURE,
  SET_BACK_FEATURE,
  HOOK_FEATURE,
  WARM_FEATURE,
  PAIR_FEATURE,
]
/** Percentage of seeds without faults, in which every rule is checked exactly. */
const CALM_PERCENT = 40
const OPERATED_PERCENT = 40

/** Each of these features has its own stream: the other draws of a seed do not depend on it. */
export interface FeatureRandom {
  readonly signals: FuzzRandom
  readonly stops: FuzzRandom
  readonly limits: FuzzRandom
  readonly setBack: FuzzRandom
  readonly hooks: FuzzRandom
  readonly warm: FuzzRandom
  readonly pair: FuzzRandom
}

export function drawFeatures(dice: FuzzRandom, own: FeatureRandom): Features {
  const isCalm = dice.chance(CALM_PERCENT)
  const isOperated = dice.chance(OPERATED_PERCENT)
  const percent = dice.oneOf([25, 50, 75])
  const on = new Set<Feature>([
    ...dice.some(ALL, percent),
    ...(isOperated ? dice.some(OPERATOR_FEATURES, 50) : []),
  ])
  if (own.signals.chance(NO_SIGNALS_PERCENT)) on.add(SIGNAL_FEATURE)
  if (own.stops.chance(STOP_GRACES_PERCENT)) on.add(STOP_FEATURE)
  if (own.limits.chance(FEW_ATTEMPTS_PERCENT)) on.add(LIMIT_FEATURE)
  if (own.setBack.chance(SET_BACK_PERCENT) && !isCalm) on.add(SET_BACK_FEATURE)
  if (own.hooks.chance(HOOKS_PERCENT)) on.add(HOOK_FEATURE)
  if (own.warm.chance(WARM_PERCENT)) on.add(WARM_FEATURE)
  if (own.pair.chance(PAIR_PERCENT) && !isCalm) on.add(PAIR_FEATURE)
  return { on, faults: isCalm ? [] : drawKinds(dice) }
}

/** Few kinds at a time, so that each occurs often; sometimes all of them. */
function drawKinds(dice: FuzzRandom): readonly FaultKind[] {
  const kinds = dice.some(SWARM_KINDS, dice.oneOf([10, 25, 60]))
  return kinds.length > 0 ? kinds : [dice.oneOf(SWARM_KINDS)]
}
