/**
 * Checks a run against its scenario's assertions, using only the events, the clients' requests and the
 * servers' state. The controller's own state is not read, so that an error there cannot hide itself.
 */
import type { Event } from '../../controller/model/event.ts'
import type { LostHistory } from '../world/store-history.ts'
import type { Metrics } from '../scenario/metrics.ts'
import type { AlwaysName, Assertions } from '../scenario/assertions.ts'
import type { World } from '../world/world.ts'
import { admissionRules } from './admission-rules.ts'
import type { AlwaysRule, RuleContext } from './always-rule.ts'
import { acknowledgedNeverLost, configurationKept } from './durable-rules.ts'
import { fairnessBound } from './fairness-bound.ts'
import { checkFinal, requireMetricPaths } from './final-metrics.ts'
import { groupIsolation } from './group-isolation.ts'
import { epochsUnique } from './epochs-unique.ts'
import { Liveness } from './liveness.ts'
import { lostAttemptsKept, lostAttemptsSettled } from './lost-attempt-rules.ts'
import { observe } from './observed.ts'
import type { Observed } from './observed.ts'
import { Occurrence } from './occurrence.ts'
import { eventChain, finalsNeverChange } from './record-rules.ts'
import { Shadow } from './shadow.ts'
import { storeBehindNoticed } from './store-behind-rule.ts'
import { singleRun } from './single-run.ts'
import { victimChoice } from './victim-choice.ts'
import { idleRule, noswapNeverSwapped, p0Rule } from './victim-rules.ts'
import type { Report, Violation } from './violation.ts'
import { NodeMessages } from './node-messages.ts'
import { commitLimit, reserveKept, residentWithinCapacity } from './vram-rules.ts'

export interface Checker {
  /** Violations so far. */
  readonly violations: readonly Violation[]
  /** A batch of events, in order, as soon as it is durable. */
  afterEvents(events: readonly Event[]): void
  /** Called after every step of the clock, at least after those that produced events. */
  afterStep(): void
  /** The run is over: checks what should have happened by now, and the metrics. Returns all violations. */
  finish(metrics: Metrics): readonly Violation[]
}

/**
 * Maximum number of listed violations per assertion; the rest are counted, so that one assertion does not
 * hide another.
 */
const MAX_VIOLATIONS_EACH = 20

const ALWAYS_RULES: Readonly<Record<AlwaysName, (context: RuleContext) => AlwaysRule>> = {
  single_run: singleRun,
  resident_within_capacity: residentWithinCapacity,
  reserve_kept: reserveKept,
  commit_limit: commitLimit,
  noswap_never_swapped: noswapNeverSwapped,
  idle_rule: idleRule,
  p0_rule: p0Rule,
  fairness_bound: fairnessBound,
  victim_choice: victimChoice,
  group_isolation: groupIsolation,
  admission_rules: admissionRules,
  event_chain: eventChain,
  finals_never_change: finalsNeverChange,
  acknowledged_never_lost: acknowledgedNeverLost,
  configuration_kept: configurationKept,
  store_behind_noticed: storeBehindNoticed,
  epochs_unique: epochsUnique,
  lost_attempts_kept: lostAttemptsKept,
  lost_attempts_settled: lostAttemptsSettled,
}

/**
 * Checks a world that has not started yet. It listens to events itself; the caller reports steps. Throws
 * RangeError for a metric that no result has.
 */
export function createChecker(world: World, assertions: Assertions): Checker {
  const observed = observe(world)
  const checker = new AssertionChecker(observed, assertions)
  observed.listen((events) => checker.afterEvents(events))
  observed.faults?.onSetBack((lost) => checker.setBack(lost))
  return checker
}

export class AssertionChecker implements Checker {
  readonly violations: Violation[] = []
  readonly #observed: Observed
  readonly #assertions: Assertions
  readonly #shadow: Shadow
  readonly #witnesses: NodeMessages | null
  readonly #always: readonly AlwaysRule[]
  readonly #everyStep: readonly AlwaysRule[]
  readonly #occurrences: readonly Occurrence[]
  readonly #liveness: readonly Liveness[]
  readonly #nodeIds = new Set<string>()
  readonly #taskIds = new Set<string>()
  /** Number of violations by assertion. */
  readonly #found = new Map<string, number>()

  constructor(observed: Observed, assertions: Assertions) {
    requireMetricPaths(assertions.final)
    this.#observed = observed
    this.#assertions = assertions
    const shadow = new Shadow(observed)
    this.#shadow = shadow
    this.#witnesses =
      observed.faults === null ? null : new NodeMessages(observed.faults, () => observed.now())
    const contextOf = (assertion: string): RuleContext => ({
      ...{ shadow, observed, witnesses: this.#witnesses },
      report: this.#reportAs(assertion),
    })
    this.#always = assertions.always.map((name) => ALWAYS_RULES[name](contextOf(name)))
    this.#everyStep = this.#always.filter(
      (rule) => rule.afterEveryStep !== undefined && observed.faults !== null,
    )
    this.#occurrences = assertions.sometimes.map((name) => new Occurrence(name, contextOf(name)))
    this.#liveness = assertions.eventually.map(
      (assertion) => new Liveness(assertion, contextOf(assertion.that)),
    )
  }

  afterEvents(events: readonly Event[]): void {
    for (const event of events) {
      if (event.nodeId !== null) this.#nodeIds.add(event.nodeId)
      if (event.taskId !== null) this.#taskIds.add(event.taskId)
      this.#witnesses?.saw(event)
      for (const rule of this.#always) rule.before?.(event)
      for (const occurrence of this.#occurrences) occurrence.before(event)
      for (const liveness of this.#liveness) liveness.before(event)
      this.#shadow.apply(event)
      for (const rule of this.#always) rule.after?.(event)
    }
  }

  setBack(lost: LostHistory): void {
    this.#shadow.setBack(lost.stored)
    this.#witnesses?.setBack(lost)
    for (const rule of this.#always) rule.setBack?.(lost)
  }

  afterStep(): void {
    for (const rule of this.#everyStep) rule.afterEveryStep?.()
    if (this.#nodeIds.size === 0 && this.#taskIds.size === 0) return
    for (const rule of this.#always) rule.afterStep?.(this.#nodeIds, this.#taskIds)
    this.#nodeIds.clear()
    this.#taskIds.clear()
  }

  finish(metrics: Metrics): readonly Violation[] {
    this.afterStep()
    for (const rule of this.#always) rule.finish?.()
    const now = this.#observed.now()
    for (const occurrence of this.#occurrences) occurrence.finish(now)
    for (const liveness of this.#liveness) liveness.finish(now)
    for (const assertion of this.#assertions.final)
      checkFinal(assertion, metrics, this.#reportAs(assertion.metric))
    for (const [assertion, found] of this.#found) {
      if (found > MAX_VIOLATIONS_EACH)
        this.violations.push({ assertion, at: now, detail: `and ${found - MAX_VIOLATIONS_EACH} more times` })
    }
    return this.violations
  }

  #reportAs(assertion: string): Report {
    return (detail, place = {}) => {
      const found = (this.#found.get(assertion) ?? 0) + 1
      this.#found.set(assertion, found)
      if (found <= MAX_VIOLATIONS_EACH)
        this.violations.push({ assertion, at: this.#observed.now(), detail, ...place })
    }
  }
}
