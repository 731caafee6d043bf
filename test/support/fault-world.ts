/**
 * A controller and servers of production code on a faulty network in virtual time; both may crash at any
 * moment and restart from their durable state. It checks the invariants at every step.
 */
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { createController } from '../../controller/controller.ts'
import type { Controller } from '../../controller/controller.ts'
import type { InputTap } from '../../controller/recording/input-recorder.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Event } from '../../controller/model/event.ts'
import type { TaskState, DurationMs, Instant, OnNodeLoss } from '../../protocol/units.ts'
import { isFinal } from '../../controller/model/task.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { DeviceListener } from '../../gpu-server/core/device.ts'
import { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { NodeStorage } from '../../gpu-server/core/storage.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import { FaultTally } from '../../simulator/results/fault-tally.ts'
import { FaultyStorage } from '../../simulator/fleet/faulty-storage.ts'
import type { Committer } from '../../simulator/world/process-store.ts'
import { healthyDisk, storeOf } from '../../simulator/world/process-store.ts'
import { ProcessClock } from '../../simulator/kernel/process-clock.ts'
import { SimulatedDevice } from '../../simulator/fleet/simulated-device.ts'
import { OpenWorkload } from '../../simulator/fleet/open-workload.ts'
import type { SimTask } from '../../simulator/scenario/scenario.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import type { Endpoint } from './faulty-network.ts'
import { FaultyNetwork } from './faulty-network.ts'
import { node, task } from './world-builder.ts'

export interface FaultWorldOptions {
  readonly seed?: number
  readonly nodes?: number
  readonly gpusPerNode?: number
  readonly config?: Partial<ConfigFields>
  /** Maximum delay in ms until a commit is durable, and again until that is acknowledged; 0: at once. */
  readonly commitMs?: DurationMs
  /** Observes everything that enters a controller; requested at each start. */
  readonly watch?: () => InputTap
}

/** Short leases, so that an hour of virtual time contains many of them. */
const SHORT: Partial<ConfigFields> = {
  heartbeat_seconds: 1,
  run_lease_seconds: 10,
  safety_reserve_mib: 0,
  idle_swap_out_seconds: 3,
}

export interface TaskPlan {
  readonly id: string
  readonly ms: DurationMs
  readonly onNodeLoss?: OnNodeLoss
  readonly vramMib?: number
  /** A lease, if null. */
  readonly command?: readonly string[] | null
  /** Time from SIGTERM to the end; 0 means that it ends at once. */
  readonly stopTakesMs?: DurationMs
  /** Replaces uninterrupted work from start to end. */
  readonly work?: SimTask['work']
}

interface Host {
  readonly name: string
  readonly id: string
  storage: NodeStorage
  server: ServerCore | null
  endpoint: Endpoint | null
}

interface Life {
  readonly controller: Controller
  readonly endpoint: Endpoint
  isOver: boolean
}

export class FaultWorld {
  readonly clock = new VirtualClock(1_000_000)
  readonly network: FaultyNetwork
  readonly hosts = new Map<string, Host>()
  readonly events: Event[] = []
  /** Violated invariants. */
  readonly violations: string[] = []
  /** Ids of tasks whose submission was acknowledged. */
  readonly acknowledged = new Set<string>()
  readonly faults: unknown[] = []
  /** Returns the refusal of a start by its host, by node and task, or null. */
  refusing:
    | ((node: string, taskId: string) => { readonly detail: string; readonly refused?: StartRefused } | null)
    | null = null
  /** Nodes on which a launch has not begun when its server is killed. */
  readonly slowToLaunch = new Set<string>()
  readonly #devices = new Map<
    string,
    { readonly device: SimulatedDevice; readonly listener: DeviceListener }
  >()
  readonly #o: FaultWorldOptions
  readonly #disk = healthyDisk()
  readonly #tally = new FaultTally()
  readonly #store = createMemoryStore({ retainEvents: 100_000 })
  readonly #workload = new OpenWorkload()
  readonly #random
  readonly #finals = new Map<string, TaskState>()
  readonly #lives: Life[] = []
  readonly #start: Instant

  constructor(options: FaultWorldOptions = {}) {
    this.#o = options
    this.#start = this.clock.now()
    this.#disk.slowMs = options.commitMs ?? 0
    this.#random = createSeededRandom(options.seed ?? 1)
    this.network = new FaultyNetwork(this.clock, this.#random.stream('network'))
    for (let i = 1; i <= (options.nodes ?? 2); i++) {
      const name = `n${i}`
      this.hosts.set(name, {
        name,
        id: nodeIdFromName(name),
        storage: new FaultyStorage(() => {}),
        server: null,
        endpoint: null,
      })
    }
  }

  get nowMs(): DurationMs {
    return this.clock.now() - this.#start
  }

  /** The controller that was started last. */
  get controller(): Controller {
    const life = this.#lives.at(-1)
    if (life === undefined) throw new Error('no controller was started')
    return life.controller
  }

  idOf(name: string): string {
    return this.#host(name).id
  }

  async startAll(): Promise<void> {
    void this.startController()
    await this.run(1_000)
    for (const name of this.hosts.keys()) this.startServer(name)
    await this.run(1_000)
  }

  async startController(): Promise<void> {
    const name = `controller${this.#lives.length}`
    const endpoint = this.network.endpoint(name)
    const clock = new ProcessClock(this.clock)
    const random = createSeededRandom(`${this.#o.seed ?? 1}/${name}`)
    const committer: Committer = {
      get isOver() {
        return life.isOver
      },
      die: () => this.#end(life, clock),
      dieAtNextCommand: () => {},
    }
    const controller = createController(
      { clock, random, bus: endpoint, store: this.#storeFor(committer) },
      {
        initialConfig: { ...SHORT, ...this.#o.config },
        ...(this.#o.watch === undefined ? {} : { inputTap: this.#o.watch() }),
        onEvents: (events) => this.#onEvents(events),
        onFault: (fault) => {
          this.faults.push(fault)
          this.#end(life, clock)
        },
      },
    )
    const life: Life = { controller, endpoint, isOver: false }
    this.#lives.push(life)
    this.#mortals.set(life, clock)
    await controller.start()
  }

  readonly #mortals = new Map<Life, ProcessClock>()

  /** As with kill -9: nothing in progress is finished. */
  killController(): void {
    const life = this.#lives.at(-1)
    if (life !== undefined) this.#end(life, this.#mortals.get(life) as ProcessClock)
  }

  /** Starts the next controller at once; it is active when time has passed. */
  restartController(): void {
    this.killController()
    void this.startController()
  }

  isFinal(id: string): boolean {
    return this.#finals.has(id)
  }

  #end(life: Life, clock: ProcessClock): void {
    life.isOver = true
    life.endpoint.kill()
    clock.isDead = true
  }

  #storeFor(process: Committer): Store {
    const [clock, random, tally] = [this.clock, this.#random, this.#tally]
    return storeOf(process, {
      isReliable: false,
      inner: this.#store,
      disk: this.#disk,
      clock,
      random,
      tally,
      onDurable: () => {},
      onPromise: () => {},
    })
  }

  startServer(name: string): void {
    const host = this.#host(name)
    if (host.server !== null) return
    host.endpoint = this.network.endpoint(name)
    host.server = this.#serverOf(name, host.storage, host.endpoint)
    host.server.start()
  }

  /** The broker is back: the bus of every server reconnects. */
  restoreBroker(): void {
    this.network.startBroker()
    for (const { server } of this.hosts.values()) server?.reconnected()
  }

  /** The host crashes with everything on it. */
  killServer(name: string): void {
    const host = this.#host(name)
    host.server?.stop()
    host.endpoint?.kill()
    host.server = null
    host.endpoint = null
  }

  /** Its disk is lost: it knows neither its boots nor its attempts. */
  wipe(name: string): void {
    this.#host(name).storage = new FaultyStorage(() => {})
  }

  /** A copy of the machine with the identity of that node; here it has another name. */
  startClone(name: string, cloneName: string): void {
    const endpoint = this.network.endpoint(cloneName)
    const storage = new FaultyStorage(() => {})
    const server = this.#serverOf(name, storage, endpoint)
    this.hosts.set(cloneName, { name: cloneName, id: nodeIdFromName(name), storage, server, endpoint })
    server.start()
  }

  #serverOf(name: string, storage: NodeStorage, endpoint: Endpoint): ServerCore {
    const gpus = node({ name, gpus: this.#o.gpusPerNode ?? 1, vramMib: 1_000 })
    return new ServerCore({
      nodeId: nodeIdFromName(name),
      name,
      address: `${name}.test`,
      hostSwapMib: gpus.hostSwapMib,
      signalsWanted: true,
      deviceKind: 'simulated',
      allowExec: true,
      clock: this.clock,
      random: this.#random.stream('servers'),
      bus: endpoint,
      device: this.#refusing(name, new SimulatedDevice(this.clock, gpus, this.#workload)),
      storage,
      areHeartbeatsElided: false,
    })
  }

  /** The guard of the task has disappeared with all its processes: its server cannot report how it ended. */
  loseProcess(name: string, taskId: string): void {
    const known = this.#devices.get(name)
    const attempt = this.#host(name).server?.attempts.get(taskId)?.attempt
    if (known === undefined || attempt === undefined) return
    known.listener.exited(taskId, attempt, {
      exitCode: null,
      detail: 'its guard is gone',
      didLeaseEnd: false,
      didEndItself: false,
    })
    known.device.stop(taskId, attempt, 0)
  }

  /** A device whose launches fail when the test says so. */
  #refusing(name: string, device: SimulatedDevice): SimulatedDevice {
    const launch = device.launch.bind(device)
    const observe = device.observe.bind(device)
    device.observe = (listener) => {
      this.#devices.set(name, { device, listener })
      observe(listener)
    }
    device.launch = (request, done) => {
      if (this.slowToLaunch.has(name)) return
      const refusal = this.refusing?.(name, request.start.taskId) ?? null
      if (refusal === null) return launch(request, done)
      this.clock.at(
        this.clock.now() + 1,
        () => done({ error: refusal.detail, refused: refusal.refused }),
        RANK_ARRIVAL,
      )
    }
    return device
  }

  submit({
    id,
    ms,
    onNodeLoss = 'wait',
    vramMib = 400,
    command = ['run'],
    work = { kind: 'duration', ms },
    stopTakesMs = 0,
  }: TaskPlan): void {
    const plan = task({ id, vramMib, work })
    this.#workload.add(id, plan.work, [], stopTakesMs)
    const request: TaskRequest = { ...plan.request, id, command, onNodeLoss }
    this.controller.commands.submitTask(request, (answer) => {
      if (answer.ok) this.acknowledged.add(id)
    })
  }

  stateOf(id: string): TaskState | 'unknown' {
    return this.controller.views.openTask(id)?.state ?? this.#finals.get(id) ?? 'unknown'
  }

  /** Names of the machines on which attempts of it live that are not frozen. */
  runningOn(id: string): string[] {
    return [...this.hosts.values()]
      .filter(({ server }) => server?.attempts.get(id)?.isFrozen === false)
      .map(({ name }) => name)
  }

  livesOn(id: string): string[] {
    return [...this.hosts.values()]
      .filter(({ server }) => server?.attempts.has(id) === true)
      .map(({ name }) => name)
  }

  eventsOf(kind: Event['kind'], taskId: string | null = null): Event[] {
    return this.events.filter((event) => event.kind === kind && (taskId === null || event.taskId === taskId))
  }

  /** Advances time by this amount. */
  async run(ms: DurationMs): Promise<void> {
    await this.until(() => false, ms)
  }

  /** Advances time until the condition holds, or for at most this time. Returns whether it holds. */
  async until(fact: () => boolean, withinMs: DurationMs = 600_000): Promise<boolean> {
    const end = this.clock.now() + withinMs
    // A starting controller first reads its store.
    for (let i = 0; i < 10; i++) await Promise.resolve()
    while (!fact()) {
      if (!this.clock.step(end)) {
        this.clock.advanceTo(end)
        return fact()
      }
      // Commits are promises.
      await Promise.resolve()
      await Promise.resolve()
      this.#watch()
    }
    return true
  }

  at(ms: DurationMs, fn: () => void): void {
    this.clock.at(this.#start + ms, fn, RANK_ARRIVAL)
  }

  #watch(): void {
    const alive = new Map<string, string>()
    for (const { name, server } of this.hosts.values()) {
      if (server === null) continue
      for (const attempt of server.attempts.values()) {
        if (attempt.isFrozen) continue
        const other = alive.get(attempt.taskId)
        if (other === undefined) alive.set(attempt.taskId, name)
        else if (this.violations.length < 10)
          this.violations.push(`at ${this.nowMs}: ${attempt.taskId} runs on ${other} and on ${name}`)
      }
    }
  }

  #onEvents(events: readonly Event[]): void {
    for (const event of events) {
      this.events.push(event)
      const { taskId } = event
      if (taskId === null) continue
      const final = this.#finals.get(taskId)
      if (final !== undefined)
        this.violations.push(`at ${this.nowMs}: ${taskId} was ${final}, and then came ${event.kind}`)
      if (event.kind === 'task_finished') this.#finals.set(taskId, event.data['state'] as TaskState)
    }
  }

  /** Every acknowledged task is in the store, and ended tasks have the reported end. */
  async checkDurable(): Promise<void> {
    for (const id of this.acknowledged) {
      const record = await this.#store.reads.task(id)
      if (record === null) this.violations.push(`${id} was acknowledged and is not in the store`)
      const final = this.#finals.get(id)
      if (final !== undefined && record?.state !== final)
        this.violations.push(`${id} was ${final} and is ${record?.state}`)
      if (record !== null && isFinal(record.state) !== (this.controller.views.openTask(id) === undefined)) {
        this.violations.push(`${id} is ${record.state} in the store, and the controller thinks otherwise`)
      }
    }
  }

  #host(name: string): Host {
    const host = this.hosts.get(name)
    if (host === undefined) throw new Error(`no machine ${name}`)
    return host
  }
}
