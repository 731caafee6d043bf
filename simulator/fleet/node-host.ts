/**
 * One machine of the fleet, which may fail: its GPUs, its disk, its clock, and the server process, which its
 * supervisor restarts.
 */
import type { Random } from '../../controller/ports/random.ts'
import { RANK_ARRIVAL } from '../../controller/ports/clock.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { ServerCore } from '../../gpu-server/core/server-core.ts'
import type { NodeState, NodeStorage } from '../../gpu-server/core/storage.ts'
import { createMemoryStorage, EMPTY_NODE_STATE } from '../../gpu-server/core/storage.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { HookTrouble, RunWatcher } from './device-troubles.ts'
import { SimulatedDevice } from './simulated-device.ts'
import type { InitialProcess } from './simulated-process.ts'
import type { Workload } from './workload.ts'
import { HOOK_FAULTS, type Fault, type HookFault } from '../scenario/fault.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { ScenarioNode } from '../scenario/scenario.ts'
import { serverStream, simulatedServer } from './simulated-server.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'
import { DriftingClock } from '../kernel/drifting-clock.ts'
import type { FaultTally } from '../results/fault-tally.ts'
import { FaultyStorage } from './faulty-storage.ts'
import type { Endpoint, SimBus } from '../network/sim-bus.ts'
import { ProcessClock } from '../kernel/process-clock.ts'

/** Time until a supervisor restarts a process that ended (RestartSec in deploy/systemd). */
export const RESTART_AFTER_MS: DurationMs = 1000

/** State that an earlier server has left on a node. */
export interface InitialNodeState {
  /** On its disk. */
  readonly state: NodeState
  /** On its GPUs. */
  readonly initialProcesses: readonly InitialProcess[]
}

export interface NodeHostOptions {
  readonly node: ScenarioNode
  readonly clock: SimClock
  /** Clock of its devices; absent: `clock`. */
  readonly deviceClock?: SimClock
  readonly bus: Pick<SimBus, 'endpoint'>
  readonly random: Random
  readonly workload: Workload
  readonly runs: RunWatcher | null
  /** Its server process runs, or (null) no longer runs. */
  readonly onServer: (nodeId: string, server: ServerCore | null) => void
  readonly tally: FaultTally
  /** The machine never fails. */
  readonly isReliable: boolean
  readonly areHeartbeatsElided: boolean
  /** State of an earlier server; null: none. */
  readonly home: InitialNodeState | null
  /** The controller refused a server's hello; the reason is a code. */
  readonly onRefused?: (node: string, reason: string) => void
}

interface ServerProcess {
  readonly core: ServerCore
  readonly endpoint: Endpoint
  /** Null: it stops, and is never killed. */
  readonly clock: ProcessClock | null
}

/** Faults that last on a machine. */
export type MachineFault =
  | Extract<
      Fault,
      {
        readonly kind:
          | 'gpu_lost'
          | HookFault
          | 'slow_swap'
          | 'host_memory_short'
          | 'clock_drift'
          | 'crash'
          | 'node_disk_lost'
      }
    >
  | (Extract<Fault, { readonly kind: 'disk_full' }> & { readonly on: { readonly node: string } })

export class NodeHost {
  readonly id: string
  readonly name: string
  readonly #o: NodeHostOptions
  /** Its own clock; null: it shows true time. */
  readonly #drifting: DriftingClock | null
  readonly #clock: Clock
  readonly #storage: FaultyStorage
  readonly #disk: NodeStorage
  readonly #active = new Set<MachineFault>()
  #device: SimulatedDevice
  #process: ServerProcess | null = null
  #starts = 0

  constructor(options: NodeHostOptions) {
    this.#o = options
    this.name = options.node.name
    this.id = idOfNode(options.node)
    this.#drifting = options.isReliable ? null : new DriftingClock(options.clock)
    this.#clock = this.#drifting ?? options.clock
    const state = options.home?.state ?? EMPTY_NODE_STATE
    this.#storage = new FaultyStorage(() => this.#diskFailed(), state)
    this.#disk = options.isReliable ? createMemoryStorage(state.bootCounter, state) : this.#storage
    this.#device = this.#newDevice()
    // Tasks present at the start get their lease with the first answer to the server, before any fault.
    for (const initialProcess of options.home?.initialProcesses ?? [])
      this.#device.addInitialProcess(initialProcess)
  }

  /** Null while its process is down. */
  get server(): ServerCore | null {
    return this.#process?.core ?? null
  }

  /** The current device of the machine. */
  get device(): SimulatedDevice {
    return this.#device
  }

  /** How far its clock is ahead of true time. */
  get aheadMs(): DurationMs {
    return this.#drifting?.aheadMs ?? 0
  }

  /** Returns whether a fault is active. */
  get isTroubled(): boolean {
    return this.#process === null || this.#active.size > 0
  }

  /** GPUs that work, or will again. */
  get usableGpus(): number {
    let gpus = this.#o.node.gpuCount
    for (const fault of this.#active) {
      if (fault.forMs !== null) continue
      if (fault.kind === 'crash') return 0
      if (fault.kind === 'gpu_lost') gpus -= 1
    }
    return gpus
  }

  /**
   * Starts the server process, unless it runs or the machine is off. If the disk is full, it tries again
   * later.
   */
  start(): void {
    if (this.#process !== null || this.#isOff()) return
    this.#starts += 1
    const { node, bus, random } = this.#o
    const clock = this.#o.isReliable ? null : new ProcessClock(this.#clock)
    const endpoint = bus.endpoint(node.name)
    try {
      const onRefused = (reason: string): void => this.#o.onRefused?.(node.name, reason)
      const ground = {
        clock: clock ?? this.#clock,
        bus: endpoint,
        device: this.#device,
        storage: this.#disk,
        areHeartbeatsElided: this.#o.areHeartbeatsElided,
        onRefused,
      }
      const core = simulatedServer(node, {
        ...ground,
        random: random.stream(serverStream(node, this.#starts)),
      })
      this.#process = { core, endpoint, clock }
      this.#o.onServer(this.id, core)
      core.start()
    } catch (error) {
      endpoint.kill()
      if (clock !== null) clock.isDead = true
      if (!this.#storage.isFull) throw error
      this.#startLater()
    }
  }

  /** The server process, if it runs, dies and is restarted at once. */
  bounce(): void {
    if (this.#process === null) return
    this.#o.tally.fires('bounce')
    this.#kill()
    this.start()
  }

  begin(fault: MachineFault): void {
    this.#active.add(fault)
    switch (fault.kind) {
      case 'crash':
      case 'node_disk_lost':
        this.#tellIfRunning(fault.kind)
        this.#kill()
        this.#device.powerOff()
        if (fault.kind === 'node_disk_lost') this.#storage.replace()
        return
      case 'gpu_lost':
        this.#o.tally.fires('gpu_lost')
        return this.#device.loseGpu(fault.gpu)
      case 'clock_drift':
        this.#o.tally.fires('clock_drift')
        return this.#refresh()
      case 'slow_swap':
      case 'host_memory_short':
      case 'disk_full':
      case 'hook_hangs':
      case 'hook_late':
      case 'hook_lies':
      case 'hook_errs':
      case 'hook_dies':
        return this.#refresh()
    }
  }

  end(fault: MachineFault): void {
    this.#active.delete(fault)
    this.#countDevice()
    switch (fault.kind) {
      case 'crash':
      case 'node_disk_lost':
        if (this.#isOff()) return
        this.#device = this.#newDevice()
        this.#refresh()
        return this.start()
      case 'gpu_lost':
        if (!this.#lostGpus().has(fault.gpu)) this.#device.findGpu(fault.gpu)
        return
      case 'clock_drift':
      case 'slow_swap':
      case 'host_memory_short':
      case 'disk_full':
      case 'hook_hangs':
      case 'hook_late':
      case 'hook_lies':
      case 'hook_errs':
      case 'hook_dies':
        return this.#refresh()
    }
  }

  /** The broker is back. */
  reconnected(): void {
    this.#process?.core.reconnected()
  }

  /** Moves the counts of its devices to the tally. */
  settleTally(): void {
    this.#countDevice()
  }

  /** The effects of several faults add up; of slow swaps, the slowest applies. */
  #refresh(): void {
    let factorPermille = 1000
    let hostShortMib: Mib = 0
    let ppm = 0
    let isFull = false
    const hooks: HookTrouble[] = []
    for (const fault of this.#active) {
      if (fault.kind === 'slow_swap') factorPermille = Math.max(factorPermille, fault.factorPermille)
      else if (fault.kind === 'host_memory_short') hostShortMib += fault.mib
      else if (fault.kind === 'clock_drift') ppm += fault.ppm
      else if (fault.kind === 'disk_full') isFull = true
      else if ('keepsMib' in fault) hooks.push(fault)
    }
    this.#device.troubles.swapFactorPermille = factorPermille
    this.#device.troubles.hostShortMib = hostShortMib
    this.#device.troubles.hooks = hooks.at(-1) ?? null
    this.#drifting?.setDrift(ppm)
    this.#storage.isFull = isFull
  }

  #countDevice(): void {
    const { troubles } = this.#device
    this.#o.tally.fires('slow_swap', troubles.slowedSwaps)
    this.#o.tally.fires('host_memory_short', troubles.refusedSwaps)
    for (const kind of HOOK_FAULTS) this.#o.tally.fires(kind, troubles.brokenHooks.get(kind) ?? 0)
    troubles.brokenHooks.clear()
    troubles.slowedSwaps = 0
    troubles.refusedSwaps = 0
  }

  #newDevice(): SimulatedDevice {
    const { clock, deviceClock = clock, node, workload, runs } = this.#o
    const device = new SimulatedDevice(deviceClock, node, workload, this.#clock, runs)
    device.onSurplus = () => this.server?.heartbeatNow()
    for (const gpu of this.#lostGpus()) device.loseGpu(gpu)
    return device
  }

  #lostGpus(): ReadonlySet<number> {
    const lost = new Set<number>()
    for (const fault of this.#active) if (fault.kind === 'gpu_lost') lost.add(fault.gpu)
    return lost
  }

  #isOff(): boolean {
    for (const { kind } of this.#active) if (kind === 'crash' || kind === 'node_disk_lost') return true
    return false
  }

  #tellIfRunning(kind: 'crash' | 'node_disk_lost'): void {
    if (this.#process !== null) this.#o.tally.fires(kind)
  }

  /** Works like kill -9: no operation in progress is completed. Tasks continue under their guards. */
  #kill(): void {
    const process = this.#process
    if (process === null) return
    this.#process = null
    this.#o.onServer(this.id, null)
    if (process.clock !== null) process.clock.isDead = true
    process.endpoint.kill()
    process.core.stop()
  }

  /** The refused request is answered first. */
  #diskFailed(): void {
    this.#o.tally.fires('disk_full')
    if (this.#process === null) return
    const failed = this.#process
    this.#o.clock.soon(() => {
      if (this.#process !== failed) return
      this.#kill()
      this.#startLater()
    }, RANK_ARRIVAL)
  }

  #startLater(): void {
    const { clock } = this.#o
    clock.at(clock.now() + RESTART_AFTER_MS, () => this.start(), RANK_ARRIVAL)
  }
}
