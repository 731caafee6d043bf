/**
 * Requests for the tasks of this host: for a task that is stopped while it is out, the kernel holds them
 * (socket-watch.ts), for one that runs on, a proxy does (port-proxies.ts). Where there are proxies, a task
 * that is stopped has one as well, which passes everything: a gateway reaches only what proxies lead to.
 */
import type { RequestCounts } from '../../protocol/message-fields.ts'
import type { SwapMethod } from '../../protocol/units.ts'
import type { PortAddress } from '../core/device.ts'
import { PortProxies, type PortProxiesOptions, type ProxiedTask } from './port-proxies.ts'
import { SocketWatch, type WatchedTask } from './socket-watch.ts'

export interface RequestedTask extends ProxiedTask, WatchedTask {
  readonly start: ProxiedTask['start'] & WatchedTask['start']
  /** It runs while its bytes are not in VRAM, unless the driver had to take them. */
  readonly staysRunning: boolean
  /** How its bytes last left: the driver stops it. */
  readonly swappedOutBy: SwapMethod
}

export interface TaskRequestsOptions<T extends RequestedTask> extends PortProxiesOptions<T> {
  /** Receives one line for the log that is about no task. */
  readonly onTrouble: (line: string) => void
}

export class TaskRequests<T extends RequestedTask> {
  readonly #watch: SocketWatch<T>
  readonly #proxies: PortProxies<T>
  readonly #hasRange: boolean

  constructor(options: TaskRequestsOptions<T>) {
    const { program, onRequest, onTrouble, range } = options
    this.#hasRange = range !== null
    this.#watch = new SocketWatch({ program, onRequest, onNote: onTrouble })
    this.#proxies = new PortProxies(options)
  }

  /** Its processes run, as this server or an earlier one started them. */
  async started(task: T, isOut = false): Promise<void> {
    if (this.#isProxied(task)) await this.#proxies.adopt(task, isOut && task.staysRunning)
  }

  /**
   * Its swap-out, for which `leave` resolves with true. Resolves with true if the task has left, and nothing
   * but a request has to bring it back.
   */
  async left(task: T, leave: () => Promise<boolean>): Promise<boolean> {
    if (!task.staysRunning) return (await leave()) && (await this.#watch.watch(task))
    const isHeld = await this.#proxies.hold(task)
    let hasLeft = false
    try {
      hasLeft = await leave()
    } finally {
      if (!hasLeft) await this.#proxies.pass(task)
    }
    if (hasLeft && isHeld) await this.#proxies.left(task)
    const isWatched = hasLeft && task.swappedOutBy === 'driver' && (await this.#watch.watch(task))
    return hasLeft && (isHeld || isWatched)
  }

  /** An earlier server swapped it out. */
  async found(task: T): Promise<void> {
    if (task.swappedOutBy === 'driver') await this.#watch.watch(task)
  }

  /** Its bytes are back in VRAM. */
  returned(task: T): void {
    this.#watch.forget(task)
    if (task.staysRunning) void this.#proxies.pass(task)
  }

  /** It has ended. */
  forget(task: T): void {
    this.#watch.forget(task)
    this.#proxies.close(task)
  }

  /** Returns true if a request waits for this running task now. */
  hasRequest(task: T): Promise<boolean> {
    return this.#watch.hasRequest(task)
  }

  /** Refused ones, for heartbeats. */
  counts(): RequestCounts {
    return { full_queues: this.#watch.fullQueues, ...this.#proxies.totals }
  }

  /** Returns the addresses of its declared ports for clients; empty: the ports themselves. */
  addressesOf(task: T): readonly PortAddress[] {
    return this.#isProxied(task) ? this.#proxies.addressesOf(task) : []
  }

  /** Without a range of ports, a task that runs while it is out is told why it has no address. */
  #isProxied({ staysRunning }: T): boolean {
    return staysRunning || this.#hasRange
  }

  close(): void {
    this.#watch.close()
    this.#proxies.closeAll()
  }
}
