/**
 * Checks of a run besides its assertions: consistent sums, queue order, an end within bounds, and nothing
 * left over. Checked exactly in a world without faults; with faults, rules that depend on messages in flight
 * are checked at the end.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { Envelope } from '../../../protocol/envelope.ts'
import type { Report, Violation } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'
import { checkAgreement, checkDevices, checkLedgers, checkLeftovers } from './ledgers.ts'
import { checkPreparing } from './preparing-watch.ts'
import { ProbeWatch } from './probe-watch.ts'
import { EagerWatch } from './eager-watch.ts'
import { Owners } from './owners.ts'
import { QueueOrder } from './queue-order.ts'
import { WireRules } from './wire-rules.ts'
import { checkCollector, ReturnOrder } from './return-order.ts'
import { StopRules } from './stop-rules.ts'

/** A run that exceeds these bounds never ends. */
export interface Bounds {
  readonly steps: number
  readonly virtualMs: DurationMs
}

/** The run exceeded its bounds and was aborted. */
export class Overrun extends Error {
  override readonly name = 'Overrun'
}

const MAX_VIOLATIONS = 20
/** R11. */
const MOST_IN_FLIGHT_PER_NODE = 32

export class Soundness {
  readonly violations: Violation[] = []
  readonly #world: World
  readonly #bounds: Bounds
  readonly #isCalm: boolean
  readonly #wire: WireRules
  readonly #owners: Owners
  readonly #queues: QueueOrder
  readonly #returns: ReturnOrder
  readonly #eager: EagerWatch
  readonly #probes: ProbeWatch
  readonly #stops: StopRules
  readonly #nodeIds = new Set<string>()
  #isNews = false

  constructor(world: World, bounds: Bounds, isCalm: boolean) {
    this.#world = world
    this.#bounds = bounds
    this.#isCalm = isCalm
    this.#wire = new WireRules(world, this.#reportAs('wire'))
    this.#owners = new Owners(world)
    this.#returns = new ReturnOrder(world, this.#reportAs('return_order'))
    this.#queues = new QueueOrder(world, this.#reportAs('queue_order'))
    this.#eager = new EagerWatch(world, this.#reportAs('eager_return'))
    this.#probes = new ProbeWatch(world, this.#reportAs('probe'))
    this.#stops = new StopRules(world, this.#reportAs('stop'), isCalm)
    world.listen((events) => this.#heard(events))
  }

  /** Called with a request and its answer. */
  answered(asked: Envelope, answer: Envelope): void {
    this.#wire.answered(asked, answer)
    this.#stops.answered(asked)
  }

  /** Throws Overrun. */
  afterStep(): void {
    const { clock, nowMs } = this.#world
    if (clock.steps > this.#bounds.steps || nowMs > this.#bounds.virtualMs)
      throw new Overrun(`the run is not over after ${clock.steps} steps, at ${nowMs} ms`)
    this.#checkInFlight()
    if (this.#isCalm) this.#checkOrder([])
    if ((clock.nextAt() ?? Infinity) <= clock.now()) return
    this.#probes.afterInstant()
    this.#stops.afterInstant()
    checkPreparing(this.#world, this.#reportAs('preparing'))
    if (!this.#isNews) return
    this.#isNews = false
    checkLedgers(this.#world, this.#nodeIds, this.#reportAs('books'))
    checkDevices(this.#world, this.#reportAs('device'))
    if (this.#isCalm) checkCollector(this.#world, this.#nodeIds, this.#reportAs('collector'))
    this.#nodeIds.clear()
    if (this.#isCalm) this.#eager.afterInstant()
    if (this.#isCalm) checkAgreement(this.#world, this.#reportAs('agreement'))
  }

  /** Limits the commands in flight to all nodes together (R11). */
  #checkInFlight(): void {
    const { inFlight } = this.#world.controller.outboundDepth()
    const most = MOST_IN_FLIGHT_PER_NODE * this.#world.plan.nodes.length
    if (inFlight > most)
      this.#reportAs('commands_in_flight')(`${inFlight} commands are in flight, the maximum is ${most}`)
  }

  finish(): void {
    this.#probes.afterInstant()
    checkLedgers(this.#world, this.#world.controller.cluster.nodes.keys(), this.#reportAs('books'))
    checkDevices(this.#world, this.#reportAs('device'))
    checkLeftovers(this.#world, this.#reportAs('leftovers'))
    checkAgreement(this.#world, this.#reportAs('agreement'))
  }

  #heard(events: readonly Event[]): void {
    this.#isNews = true
    for (const { nodeId } of events) if (nodeId !== null) this.#nodeIds.add(nodeId)
    this.#probes.heard(events)
    this.#stops.heard(events)
    if (!this.#isCalm) return
    this.#checkOrder(events)
    this.#eager.heard(events)
  }

  /** Called after a transaction. */
  #checkOrder(events: readonly Event[]): void {
    const owners = this.#owners.look()
    this.#queues.heard(events, owners)
    this.#returns.heard(events, owners)
  }

  #reportAs(assertion: string): Report {
    return (detail, place = {}) => {
      if (this.violations.length < MAX_VIOLATIONS)
        this.violations.push({ assertion, at: this.#world.clock.now(), detail, ...place })
    }
  }
}
