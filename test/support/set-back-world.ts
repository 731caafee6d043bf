/**
 * Production controllers, one after the other, over stores that a test may set back, and production GPU
 * servers on simulated devices that survive them; in virtual time.
 */
import { MIN_EPOCHS_AHEAD } from '../../controller/model/epoch-after-loss.ts'
import { createMemoryStore, EMPTY_STATE } from '../../controller/adapters/memory-store.ts'
import type { Controller } from '../../controller/controller.ts'
import { createController } from '../../controller/controller.ts'
import type { Event, EventKind } from '../../controller/model/event.ts'
import type { Task } from '../../controller/model/placement.ts'
import type { NodeReading } from '../../controller/query/cluster-reading.ts'
import type { Cluster } from '../../controller/state/cluster.ts'
import { noteAhead } from '../../controller/engine/inputs/nodes/contacts.ts'
import type { Store, StoredState } from '../../controller/ports/store.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import { createMemoryStorage } from '../../gpu-server/core/storage.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { RunTracker } from '../../simulator/fleet/run-tracker.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { OpenWorkload } from '../../simulator/fleet/open-workload.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { plainBus } from './plain-bus.ts'
import { simulatedServer } from '../../simulator/fleet/simulated-server.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import type { TaskFields } from './world-builder.ts'
import { node, task } from './world-builder.ts'

const START = Date.UTC(2026, 0, 2, 3, 4, 5)
const MICROTASKS = 30

export interface SubmittedTask extends TaskFields {
  readonly owner?: string | null
}

type ContactAhead = Parameters<typeof noteAhead>

export class SetBackWorld {
  readonly clock = new VirtualClock(START)
  readonly bus = plainBus(this.clock, 'wire')
  readonly events: Event[] = []
  readonly runs = new RunTracker()
  readonly servers = new Map<string, ServerCore>()
  readonly #devices = new Map<string, SimulatedDevice>()
  readonly #storages = new Map<string, ReturnType<typeof createMemoryStorage>>()
  readonly #workload = new OpenWorkload()
  #store: Store = createMemoryStore()
  #controller: Controller | null = null
  #starts = 0

  get controller(): Controller {
    if (this.#controller === null) throw new Error('no controller runs')
    return this.#controller
  }

  static async of(names: readonly string[]): Promise<SetBackWorld> {
    const world = new SetBackWorld()
    await world.startController()
    for (const name of names) world.startServer(name)
    await world.pass(1_000)
    return world
  }

  /** @param stored the content of the store; by default its previous content */
  async startController(stored?: StoredState): Promise<void> {
    if (stored !== undefined) this.#store = createMemoryStore({ initial: stored })
    this.#starts += 1
    this.#controller = createController(
      {
        clock: this.clock,
        random: createSeededRandom(`start ${this.#starts}`),
        bus: this.bus,
        store: this.#store,
      },
      { onEvents: (events) => this.events.push(...events) },
    )
    await this.#controller.start()
  }

  async stopController(): Promise<void> {
    await this.#controller?.stop()
    this.#controller = null
  }

  /** The controller ends, and another one starts with this store. */
  async setBack(stored: StoredState): Promise<void> {
    await this.stopController()
    await this.startController(stored)
  }

  /** The current durable state. */
  async stored(): Promise<StoredState> {
    return structuredClone(await this.#store.load())
  }

  startServer(name: string): void {
    const shape = node({ name, vramMib: 10_000, reserveMib: 0 })
    const device =
      this.#devices.get(name) ??
      new SimulatedDevice(this.clock, shape, this.#workload, this.clock, this.runs.watcherOf(name))
    const storage = this.#storages.get(name) ?? createMemoryStorage()
    this.#devices.set(name, device)
    this.#storages.set(name, storage)
    const random = createSeededRandom(`${name} ${this.clock.now()}`).stream('server')
    const server = simulatedServer(shape, {
      clock: this.clock,
      random,
      bus: this.bus,
      device,
      storage,
      areHeartbeatsElided: false,
    })
    this.servers.set(name, server)
    server.start()
  }

  stopServer(name: string): void {
    this.servers.get(name)?.stop()
    this.servers.delete(name)
  }

  submit({ owner = null, ...fields }: SubmittedTask): void {
    const { request } = task(fields)
    this.controller.commands.submitTask({ ...request, owner, command: ['simulated'] }, (answer) => {
      if (!answer.ok) throw new Error(JSON.stringify(answer.refusal))
    })
  }

  /** Runs due timers, and settles promises before time advances. */
  async pass(ms: number): Promise<void> {
    const until = this.clock.now() + ms
    for (let isMore = true; isMore;) {
      for (let i = 0; i < MICROTASKS; i++) await Promise.resolve()
      isMore = this.clock.step(until)
    }
    this.clock.advanceTo(until)
  }

  task(id: string): Task | undefined {
    return this.controller.views.openTask(id)
  }

  /** As if a node reported that it has heard of more than the store has. */
  heardAhead(contact: ContactAhead[1], reason: ContactAhead[2], mark: ContactAhead[3]): void {
    noteAhead(this.controller.cluster as Cluster, contact, reason, mark, this.clock.now())
  }

  node(name: string): NodeReading | undefined {
    return this.controller.cluster.nodes.get(nodeIdFromName(name))
  }

  /** The node where it runs, according to the devices. */
  runsOn(id: string): readonly string[] {
    return this.runs.nodesOf(id)
  }

  eventsOf(kind: EventKind): readonly Event[] {
    return this.events.filter((event) => event.kind === kind)
  }
}

/** As `headroom restore` leaves a store: with an epoch above every used one. */
export function restored(
  stored: StoredState,
  reason: 'restored' | 'loss_accepted' = 'restored',
): StoredState {
  return {
    ...stored,
    marks: { ...stored.marks, epoch: stored.marks.epoch + MIN_EPOCHS_AHEAD },
    recovery: { reason, sinceWallMs: START },
  }
}

export { EMPTY_STATE }
