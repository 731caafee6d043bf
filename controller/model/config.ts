/**
 * The live configuration: its fields, ranges and defaults, in one table for the API, the environment and the
 * scenario files (semantics section 8).
 */
import type { DurationMs, Mib, Percent } from '../../protocol/units.ts'
import { MAX_RESERVE_MIB } from '../../protocol/limits.ts'

export type PlacementStrategy = 'best_fit' | 'spread' | 'fifo'
export const PLACEMENT_STRATEGIES: readonly PlacementStrategy[] = ['best_fit', 'spread', 'fifo']

/** Configuration as users write it: snake_case, seconds, MiB, percent. */
export interface ConfigFields {
  readonly default_vram_overcommit_percent: Percent
  readonly safety_reserve_mib: Mib
  readonly idle_swap_out_seconds: number
  readonly max_residency_seconds: number | null
  readonly swap_in_aging_seconds: number
  readonly swap_in_probe_seconds: number
  readonly eager_swap_in_seconds: number | null
  readonly stop_grace_seconds: number
  readonly max_stop_grace_seconds: number
  readonly reservation_after_seconds: number
  readonly queue_aging_seconds: number | null
  readonly placement_strategy: PlacementStrategy
  readonly max_tasks_per_gpu: number
  readonly max_requeues: number | null
  readonly heartbeat_seconds: number
  readonly run_lease_seconds: number
}

export type FieldRule =
  | { readonly kind: 'integer'; readonly min: number; readonly max: number; readonly nullable: boolean }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }

/** Ranges are inclusive. */
export const CONFIG_RULES: { readonly [K in keyof ConfigFields]: FieldRule } = {
  default_vram_overcommit_percent: { kind: 'integer', min: 0, max: 1000, nullable: false },
  safety_reserve_mib: { kind: 'integer', min: 0, max: MAX_RESERVE_MIB, nullable: false },
  idle_swap_out_seconds: { kind: 'integer', min: 1, max: 86_400, nullable: false },
  max_residency_seconds: { kind: 'integer', min: 1, max: 604_800, nullable: true },
  swap_in_aging_seconds: { kind: 'integer', min: 1, max: 86_400, nullable: false },
  swap_in_probe_seconds: { kind: 'integer', min: 1, max: 86_400, nullable: false },
  eager_swap_in_seconds: { kind: 'integer', min: 0, max: 86_400, nullable: true },
  stop_grace_seconds: { kind: 'integer', min: 0, max: 3600, nullable: false },
  max_stop_grace_seconds: { kind: 'integer', min: 0, max: 3600, nullable: false },
  reservation_after_seconds: { kind: 'integer', min: 1, max: 86_400, nullable: false },
  queue_aging_seconds: { kind: 'integer', min: 1, max: 604_800, nullable: true },
  placement_strategy: { kind: 'choice', choices: PLACEMENT_STRATEGIES },
  max_tasks_per_gpu: { kind: 'integer', min: 1, max: 1024, nullable: false },
  max_requeues: { kind: 'integer', min: 0, max: 1000, nullable: true },
  heartbeat_seconds: { kind: 'integer', min: 1, max: 60, nullable: false },
  run_lease_seconds: { kind: 'integer', min: 15, max: 86_400, nullable: false },
}

export const DEFAULT_CONFIG: ConfigFields = {
  default_vram_overcommit_percent: 0,
  safety_reserve_mib: 2048,
  idle_swap_out_seconds: 300,
  max_residency_seconds: null,
  swap_in_aging_seconds: 600,
  swap_in_probe_seconds: 600,
  eager_swap_in_seconds: 10,
  stop_grace_seconds: 30,
  max_stop_grace_seconds: 300,
  reservation_after_seconds: 300,
  queue_aging_seconds: null,
  placement_strategy: 'best_fit',
  max_tasks_per_gpu: 64,
  max_requeues: 5,
  heartbeat_seconds: 5,
  run_lease_seconds: 300,
}

/**
 * The source of the live configuration (specification 2.1): the environment until the first successful PUT.
 */
export type ConfigSource = 'environment' | 'persisted'

export interface Config {
  readonly fields: ConfigFields
  readonly source: ConfigSource
  /** 0 until something is persisted, then 1, 2, … */
  readonly revision: number
}

/** A refused value: the field, and why, as text. */
export interface FieldProblem {
  readonly field: string
  readonly detail: string
}

/** Describes the values that a rule allows: `an integer from 0 to 1000, or null`. */
export function describeRule(rule: FieldRule): string {
  if (rule.kind === 'choice') return `one of ${rule.choices.join(', ')}`
  return `an integer from ${rule.min} to ${rule.max}${rule.nullable ? ', or null' : ''}`
}

/**
 * Checks one value against its rule; never clamps, never coerces. Returns the problem, or null if the value
 * is valid.
 */
function checkField(field: string, rule: FieldRule, value: unknown): FieldProblem | null {
  const problem = { field, detail: `must be ${describeRule(rule)}` }
  if (rule.kind === 'choice')
    return typeof value === 'string' && rule.choices.includes(value) ? null : problem
  if (value === null) return rule.nullable ? null : problem
  return typeof value === 'number' && Number.isInteger(value) && value >= rule.min && value <= rule.max
    ? null
    : problem
}

/**
 * Checks a change of the configuration: known fields, in range, at least one.
 * @returns every problem found; empty if the change may be applied
 */
export function checkConfigChange(change: Readonly<Record<string, unknown>>): readonly FieldProblem[] {
  const keys = Object.keys(change)
  if (keys.length === 0) return [{ field: '', detail: 'name at least one field to change' }]
  return keys.flatMap((key) => {
    const rule = Object.hasOwn(CONFIG_RULES, key) ? CONFIG_RULES[key as keyof ConfigFields] : undefined
    if (rule === undefined) return [{ field: key, detail: 'is not a field of the configuration' }]
    return checkField(key, rule, change[key]) ?? []
  })
}

/**
 * Minimum length of a run lease in heartbeats: one lost and one late heartbeat must not end tasks (R4;
 * docs/decisions/0072).
 */
const HEARTBEATS_PER_LEASE = 3

/** Checks rules that span fields of a whole configuration; empty if it is valid. */
export function checkConfig({ heartbeat_seconds, run_lease_seconds }: ConfigFields): readonly FieldProblem[] {
  const leastSeconds = HEARTBEATS_PER_LEASE * heartbeat_seconds
  if (run_lease_seconds >= leastSeconds) return []
  const detail =
    `must be at least ${leastSeconds}: ${HEARTBEATS_PER_LEASE} times heartbeat_seconds ` +
    `(${heartbeat_seconds})`
  return [{ field: 'run_lease_seconds', detail }]
}

/** The configuration in the units of the code. Derived once per change, read on every decision. */
export interface Policy {
  readonly overcommitPercent: Percent
  readonly safetyReserveMib: Mib
  readonly idlePeriodMs: DurationMs
  readonly maxResidencyMs: DurationMs | null
  readonly swapInAgingMs: DurationMs
  readonly swapInProbeMs: DurationMs
  /** Null: no task returns eagerly. */
  readonly eagerSwapInMs: DurationMs | null
  readonly stopGraceMs: DurationMs
  /** Upper bound of the grace period that a task may request. */
  readonly maxStopGraceMs: DurationMs
  readonly reservationAfterMs: DurationMs
  readonly queueAgingMs: DurationMs | null
  readonly strategy: PlacementStrategy
  readonly maxTasksPerGpu: number
  readonly maxRequeues: number | null
  readonly heartbeatMs: DurationMs
  readonly runLeaseMs: DurationMs
}

export function policyOf(fields: ConfigFields): Policy {
  const orNull = (seconds: number | null) => (seconds === null ? null : seconds * 1000)
  return {
    overcommitPercent: fields.default_vram_overcommit_percent,
    safetyReserveMib: fields.safety_reserve_mib,
    idlePeriodMs: fields.idle_swap_out_seconds * 1000,
    maxResidencyMs: orNull(fields.max_residency_seconds),
    swapInAgingMs: fields.swap_in_aging_seconds * 1000,
    swapInProbeMs: fields.swap_in_probe_seconds * 1000,
    eagerSwapInMs: orNull(fields.eager_swap_in_seconds),
    stopGraceMs: fields.stop_grace_seconds * 1000,
    maxStopGraceMs: fields.max_stop_grace_seconds * 1000,
    reservationAfterMs: fields.reservation_after_seconds * 1000,
    queueAgingMs: orNull(fields.queue_aging_seconds),
    strategy: fields.placement_strategy,
    maxTasksPerGpu: fields.max_tasks_per_gpu,
    maxRequeues: fields.max_requeues,
    heartbeatMs: fields.heartbeat_seconds * 1000,
    runLeaseMs: fields.run_lease_seconds * 1000,
  }
}
