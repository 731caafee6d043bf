/**
 * Addresses for tasks that run while their VRAM is away: a forwarding proxy for each such attempt, which
 * holds its requests meanwhile (docs/decisions/0125). Proxies outlive this server, which finds them in the
 * folders of the guards.
 */
import { randomInt } from 'node:crypto'
import type { DurationMs } from '../../protocol/units.ts'
import type { PortAddress } from '../core/device.ts'
import { GuardLink } from '../guard/guard-link.ts'
import { proxyCountsIn, startProxy, type ProxyCounts, type ProxyTarget } from '../guard/start-proxy.ts'
import { errorText } from '../../protocol/error-text.ts'

/** The task as the proxies need it. The same object from launch to end. */
export interface ProxiedTask {
  readonly taskId: string
  readonly attempt: number
  readonly start: {
    readonly wakePorts?: readonly number[]
    readonly httpPorts?: readonly number[]
    readonly wakeOnRequest?: boolean
    /** Present: its ports serve HTTP, and clients must not administer it. */
    readonly swapEngine?: object
  }
}

/** Ports of the proxies of this server. */
export interface ProxyRange {
  /** An IP address of this host. */
  readonly address: string
  readonly ports: { readonly from: number; readonly to: number }
}

export interface PortProxiesOptions<T extends ProxiedTask> {
  /** The guard program. */
  readonly program: string
  /** Returns the folder of the guard of a living attempt; null: the attempt is not alive. */
  readonly folderOf: (taskId: string, attempt: number) => string | null
  /** Null: no attempt gets an address. */
  readonly range: ProxyRange | null
  /** A request waits for this task, which is out. */
  readonly onRequest: (task: T) => void
  /** Receives one line for the log. */
  readonly onNote: (task: T, why: string) => void
  /** A request is held no longer than that. */
  readonly holdMs?: DurationMs
  /** Requests of one attempt that are held. */
  readonly maxHeld?: number
}

const HOLD_MS: DurationMs = 60_000
const MAX_HELD = 100
const RESTART_AFTER_MS: DurationMs = 1_000
const RETRY_AFTER_MS: DurationMs = 10_000
const NO_RANGE = 'its server has no --proxy-ports'

/** An attempt and its proxy. `why`: it has none, and clients cannot reach it. */
interface Entry<T> {
  readonly task: T
  isOut: boolean
  link: GuardLink | null
  counts: ProxyCounts | null
  why: string | null
  timer: NodeJS.Timeout | null
  /** Orders to a proxy are given one after the other. */
  turns: Promise<unknown>
}

export class PortProxies<T extends ProxiedTask> {
  readonly #options: PortProxiesOptions<T>
  readonly #entries = new Map<T, Entry<T>>()
  /** The port that is tried first: ports of ended tasks rest for as long as possible. */
  #next: number
  #totals = { refused: 0, expired: 0 }
  #isClosed = false

  constructor(options: PortProxiesOptions<T>) {
    const { range } = options
    this.#options = options
    // Not the first one: the servers before this one have given it away as well.
    this.#next = range === null ? 0 : randomInt(range.ports.from, range.ports.to + 1)
  }

  /** Requests that were refused while their tasks were out, and had returned or stayed since. */
  get totals(): { readonly refused: number; readonly expired: number } {
    return this.#totals
  }

  /** The task runs: its declared ports get addresses. */
  open(task: T): Promise<void> {
    return this.adopt(task, false)
  }

  /** An earlier server started the task: continues with its proxy if there is one. */
  async adopt(task: T, isOut: boolean): Promise<void> {
    if (targetsOf(task).length === 0 || this.#entries.has(task)) return
    const entry = { task, isOut, link: null, counts: null, why: null, timer: null, turns: Promise.resolve() }
    this.#entries.set(task, entry)
    await this.#turn(entry, () => this.#connect(entry))
  }

  /**
   * The task is about to leave: requests wait from now on. Resolves with true if they do, and bring the task
   * back.
   */
  async hold(task: T): Promise<boolean> {
    const isHeld = await this.#order(task, true)
    return isHeld && task.start.wakeOnRequest !== false
  }

  /** The task has left: asks whether a request came while it did, in case that was forgotten since. */
  async left(task: T): Promise<void> {
    const entry = this.#entries.get(task)
    if (entry === undefined) return
    await this.#turn(entry, async () => {
      const now = entry.link === null ? null : proxyCountsIn(await entry.link.ask('stat'))
      if (now?.isWanted === true && now.held > 0) this.#wanted(entry)
      return true
    })
  }

  /** The task is back, or has not left: requests are passed to it. */
  async pass(task: T): Promise<void> {
    await this.#order(task, false)
  }

  /** The task has ended, and its proxy with it. */
  close(task: T): void {
    const entry = this.#entries.get(task)
    if (entry === undefined) return
    this.#entries.delete(task)
    release(entry)
  }

  /** The server ends; proxies live on. */
  closeAll(): void {
    this.#isClosed = true
    for (const entry of this.#entries.values()) release(entry)
  }

  /** Returns the address of each declared port, in the order of declaration. */
  addressesOf(task: T): readonly PortAddress[] {
    const { counts = null, why = null, link = null } = this.#entries.get(task) ?? {}
    return targetsOf(task).map(({ target }) => {
      const found = counts?.ports.find((port) => port.target === target)
      if (link === null || counts === null || found === undefined)
        return { target, address: null, detail: why ?? 'its proxy has not started' }
      return { target, address: withPort(counts.address, found.port), detail: null }
    })
  }

  // ── orders ──────────────────────────────────────────────────────────────────

  async #order(task: T, isOut: boolean): Promise<boolean> {
    const entry = this.#entries.get(task)
    if (entry === undefined) return false
    entry.isOut = isOut
    return this.#turn(entry, async () => {
      if (entry.link === null) return false
      // Not the latest order: without the pass between two holds, its requests would stay where they are.
      if (!isOut) await this.#noteRefused(entry, entry.link)
      await entry.link.ask(isOut ? 'hold' : 'pass')
      return true
    })
  }

  /** Clients were refused while the task was out: its operator can give it more room, or a shorter wait. */
  async #noteRefused(entry: Entry<T>, link: GuardLink): Promise<void> {
    const [before, now] = [entry.counts, proxyCountsIn(await link.ask('stat'))]
    if (before === null || now === null) return
    entry.counts = now
    const [refused, expired] = [now.refused - before.refused, now.expired - before.expired]
    if (refused + expired === 0) return
    this.#totals = { refused: this.#totals.refused + refused, expired: this.#totals.expired + expired }
    const seconds = (this.#options.holdMs ?? HOLD_MS) / 1_000
    const why = `its proxy refused ${refused} requests above its limits, and ${expired} after ${seconds} s`
    this.#options.onNote(entry.task, why)
  }

  /** Returns false if it failed, and says why. */
  #turn(entry: Entry<T>, act: () => Promise<boolean>): Promise<boolean> {
    const turn = entry.turns.then(async () => {
      try {
        return this.#isOver(entry) ? false : await act()
      } catch (error) {
        if (!this.#isOver(entry)) this.#options.onNote(entry.task, `its proxy: ${errorText(error)}`)
        return false
      }
    })
    entry.turns = turn
    return turn
  }

  #isOver(entry: Entry<T>): boolean {
    return this.#isClosed || this.#entries.get(entry.task) !== entry
  }

  // ── processes ───────────────────────────────────────────────────────────────

  async #connect(entry: Entry<T>): Promise<boolean> {
    const folder = this.#options.folderOf(entry.task.taskId, entry.task.attempt)
    if (folder === null) return false
    const why = await this.#reach(entry, folder).catch(errorText)
    if (this.#isOver(entry)) return false
    if (why !== null && this.#options.range !== null) this.#failed(entry, why)
    entry.why = why
    return why === null
  }

  /** Connects to the proxy that runs, or to a new one. Resolves with why not, or null. */
  async #reach(entry: Entry<T>, folder: string): Promise<string | null> {
    if (await this.#link(entry, folder).catch(() => false)) return null
    const why = await this.#start(entry, folder)
    if (why !== null) return why
    return (await this.#link(entry, folder)) ? null : 'its proxy does not answer'
  }

  async #link(entry: Entry<T>, folder: string): Promise<boolean> {
    let link: GuardLink | null = null
    const onClosed = (): void => {
      if (link !== null) this.#ended(entry, link)
    }
    link = await GuardLink.open(folder, { onLine: () => this.#wanted(entry), onClosed }, 'proxy')
    const counts = proxyCountsIn(await link.ask('stat'))
    if (counts === null || this.#isOver(entry)) {
      link.close()
      return false
    }
    entry.link = link
    entry.counts = counts
    if (counts.isOut !== entry.isOut) await link.ask(entry.isOut ? 'hold' : 'pass')
    else if (counts.isWanted && counts.held > 0) this.#wanted(entry)
    return true
  }

  /** Resolves with why not, or null. */
  async #start({ task, isOut, counts }: Entry<T>, folder: string): Promise<string | null> {
    const { program, range, holdMs = HOLD_MS, maxHeld = MAX_HELD } = this.#options
    if (range === null) return NO_RANGE
    const targets = targetsOf(task)
    const next = counts?.ports[0]?.port ?? this.#next
    const { address, ports } = range
    const isInRange = next >= ports.from && next <= ports.to
    const start = { program, folder, address, ports, targets, isOut, holdMs, maxHeld }
    const started = await startProxy({ ...start, next: isInRange ? next : ports.from })
    if ('error' in started) return started.error
    const last = started.at(-1) ?? ports.to
    if (counts === null) this.#next = last < ports.to ? last + 1 : ports.from
    return null
  }

  #wanted({ task, isOut }: Entry<T>): void {
    if (isOut && !this.#isClosed && task.start.wakeOnRequest !== false) this.#options.onRequest(task)
  }

  /** The task may have ended as well; then there is nothing to start. */
  #ended(entry: Entry<T>, link: GuardLink): void {
    if (entry.link !== link || this.#isOver(entry)) return
    entry.link = null
    entry.why = 'its proxy is being started again'
    this.#later(entry, RESTART_AFTER_MS, () => {
      const { taskId, attempt } = entry.task
      if (this.#options.folderOf(taskId, attempt) === null) return
      this.#options.onNote(
        entry.task,
        'its proxy has ended; it is started again, and its connections are lost',
      )
      void this.#turn(entry, () => this.#connect(entry))
    })
  }

  #failed(entry: Entry<T>, why: string): void {
    if (entry.why !== why) this.#options.onNote(entry.task, `its ports have no address: ${why}`)
    this.#later(entry, RETRY_AFTER_MS, () => void this.#turn(entry, () => this.#connect(entry)))
  }

  #later(entry: Entry<T>, afterMs: DurationMs, act: () => void): void {
    if (entry.timer !== null) clearTimeout(entry.timer)
    entry.timer = setTimeout(act, afterMs)
    entry.timer.unref()
  }
}

function release<T>(entry: Entry<T>): void {
  if (entry.timer !== null) clearTimeout(entry.timer)
  entry.link?.close()
}

function targetsOf({ start }: ProxiedTask): readonly ProxyTarget[] {
  const { wakePorts = [], httpPorts = [], swapEngine } = start
  return [...new Set(wakePorts)].map((target) => ({
    target,
    protocol: swapEngine !== undefined ? 'engine' : httpPorts.includes(target) ? 'http' : 'tcp',
  }))
}

function withPort(address: string, port: number): string {
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`
}
