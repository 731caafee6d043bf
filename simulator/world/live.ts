/**
 * A simulated fleet in real time around a production controller: what `headroom serve` runs without a broker.
 * The same servers and devices as in a simulation; the clock keeps step with real time, and the store is a
 * real one.
 */
import { createController } from '../../controller/controller.ts'
import type { Controller, ControllerOptions } from '../../controller/controller.ts'
import { uuidV4 } from '../../protocol/uuid.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { Instant } from '../../protocol/units.ts'
import type { FaultNote } from './fault-agenda.ts'
import { EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import { Fleet } from '../fleet/fleet.ts'
import { LinkFaults } from '../network/link-faults.ts'
import { SimBus } from '../network/sim-bus.ts'
import { FaultTally } from '../results/fault-tally.ts'
import { forwardReserveChanges } from '../fleet/forward-reserve.ts'
import { OpenWorkload } from '../fleet/open-workload.ts'
import { deferredBus } from '../network/deferred-bus.ts'
import { planFleetFaults } from './fleet-agenda.ts'
import { PacedClock } from '../kernel/paced-clock.ts'
import type { RealTime } from '../kernel/paced-clock.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import { workloadOf } from '../scenario/generate.ts'
import type { Scenario, SimTask } from '../scenario/scenario.ts'
import { createSeededRandom } from '../kernel/seeded-random.ts'

export interface LiveFleetOptions {
  readonly scenario: Scenario
  readonly store: Store
  readonly real: RealTime
  /** Start of the clock: real time, or earlier to have a history at once. */
  readonly startAt: Instant
  /** Differs at every start, so that ids never repeat. */
  readonly seed: string
  readonly controller: ControllerOptions
  /** Called when a fault begins or ends. */
  readonly onFault?: FaultNote
}

export interface LiveFleet {
  readonly controller: Controller
  /** Loads the store, starts the controller and the servers, and then the workload. */
  start(): Promise<void>
  stop(): Promise<void>
}

/**
 * Time to catch up is held back while the store commits, so that decisions take effect when they were made.
 */
const HOLD_WHEN_BEHIND_MS = 1_000

export function createLiveFleet(o: LiveFleetOptions): LiveFleet {
  const random = createSeededRandom(o.seed)
  const clock: PacedClock = new PacedClock(
    o.startAt,
    o.real,
    (behindMs) => behindMs < HOLD_WHEN_BEHIND_MS || !controller.status.isCommitting,
  )
  const workload = new OpenWorkload()
  const bootCounter = Math.floor(o.startAt / 1000)
  const { nodes, faults } = o.scenario
  const isReliable = faults.length === 0
  const tally = new FaultTally()
  const links = new LinkFaults(random.stream('faults/links'), tally)
  const bus = new SimBus({ clock, mode: 'reference', ...(isReliable ? {} : { links }) })
  const fleet = new Fleet({
    ...{ nodes, clock, bus, links, random, workload, tally, isReliable, areHeartbeatsElided: isReliable },
    // Each start of this process is a later boot of its servers.
    nodeStateOf: () => ({ state: { ...EMPTY_NODE_STATE, bootCounter }, initialProcesses: [] }),
  })
  const endpoint = bus.endpoint(null)
  // A recording takes inputs one at a time.
  const ownBus = o.controller.inputTap === undefined ? endpoint : deferredBus(endpoint, clock)
  const controller = createController(
    { clock, random, bus: ownBus, store: o.store },
    {
      ...o.controller,
      areHeartbeatsElided: isReliable,
      onEvents: (events) => {
        for (const event of events)
          if (event.kind === 'task_finished' && event.taskId !== null) workload.forget(event.taskId)
        if (isReliable) forwardReserveChanges(events, controller.views, fleet.servers)
        o.controller.onEvents?.(events)
      },
    },
  )
  return {
    controller,
    async start() {
      await controller.start()
      // Otherwise samples before the first reading would be missing.
      await controller.series.ready
      cancelEnded(controller)
      fleet.start()
      planFleetFaults({
        ...{ plan: o.scenario, clock, fleet, tally, note: o.onFault ?? (() => {}), broker: bus },
      })
      feed(clock, o.startAt, workloadOf(o.scenario, random), (task) => {
        const id = uuidV4(random.stream('live-task-ids'))
        workload.add(id, task.work, task.allocSteps, task.stopTakesMs)
        const request = {
          ...task.request,
          id,
          name: task.request.name ?? task.request.id,
          command: task.request.command ?? ['simulated'],
        }
        controller.commands.submitTask(request, () => {})
      })
      clock.begin()
    },
    async stop() {
      fleet.stop()
      clock.stop()
      await controller.stop()
    },
  }
}

/**
 * Tasks ended with the simulated servers of the start before. Cancelled, they are no failures that an
 * operator has to look into.
 */
function cancelEnded({ views, commands }: Controller): void {
  for (const { spec, placement } of [...views.openTasks()])
    if (placement !== null && spec.onNodeLoss !== 'requeue')
      commands.cancelTask(spec.id, 'the simulated fleet, which was stopped', () => {})
}

/** Submits a generated workload over time. */
function feed(
  clock: PacedClock,
  startAt: Instant,
  arrivals: ArrivalSource,
  submit: (task: SimTask) => void,
): void {
  const next = arrivals.needsFill ? null : arrivals.next()
  if (next === null) return
  clock.at(
    startAt + next.at,
    () => {
      submit(next)
      feed(clock, startAt, arrivals, submit)
    },
    RANK_ARRIVAL,
  )
}
