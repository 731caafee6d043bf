/**
 * Checks the rules of the protocol on every answer (docs/protocol.md, R3 to R7, R9, R12): which commands a
 * server obeys, how a controller answers, and how long it waits before it relies on the end of a lease.
 * Derived from messages and events alone.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Envelope } from '../../../protocol/envelope.ts'
import type { Boot } from '../../../protocol/message-fields.ts'
import type { Command, CommandResult } from '../../../protocol/messages.ts'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { Report } from '../../check/violation.ts'
import type { World } from '../../world/world.ts'

interface NodeView {
  /**
   * The latest lease by the server's own clock: of the boot that requested it, from the time of the request.
   */
  leaseBoot: string
  leaseSentMono: number
  leaseUntilMono: number
  /** By the controllers' clock: when a lease was last answered. */
  answeredAt: Instant
  /**
   * After this time no answered lease is valid, and another lease has passed too, on a server whose clock
   * runs 5% slow.
   */
  overAt: Instant
  endedAt: Instant
  /** The longest lease that may be valid, and its end. */
  longestMs: DurationMs
  longestOverAt: Instant
  /**
   * It was ordered to restart: attempts that start before the restart are in doubt, and leases of a later
   * boot are not its own (R6).
   */
  isReset: boolean
  /** When a later boot was welcome, and by when everything before it is certainly over. */
  anewAt: Instant
  doubtEndedAt: Instant
  /**
   * It was ordered to restart before the store went back: the controller may still know that, and then waits
   * for attempts from before only from its own start on.
   */
  wasReset: boolean
  /** The highest boot that was welcome, and its latest answered snapshot. */
  boot: Boot | null
  /** Epoch of the controller that welcomed it first: earlier controllers may not know of it. */
  bootEpoch: number
  snapshotSeq: number
  /** Epoch of the controller that answered it: each knows only its own snapshots. */
  snapshotEpoch: number
}

/** Two leases may overlap in one instant; clocks count whole milliseconds. */
const ROUNDING_MS = 2
/**
 * A replaced controller notices it within this time: its timer, a commit on a slow disk, and its next answer.
 */
const REPLACED_WITHIN_MS = 30_000

export class WireRules {
  readonly #world: World
  readonly #report: Report
  readonly #nodes = new Map<string, NodeView>()
  /** The highest attempt of a task that a node has accepted, refused or never seen. */
  readonly #attempts = new Map<string, number>()
  /** Time of the placement of each task's latest attempt. */
  readonly #placedAt = new Map<string, Instant>()
  /** Swap orders that were obeyed: a repeat is accepted again. */
  readonly #obeyed = new Set<string>()
  /** Some node may lose its disk: it forgets its answers, and its tasks are in doubt from then on. */
  readonly #mayForget: boolean
  /** The controller's connection to the broker: when it last changed; null: it was never away. */
  #broker: { readonly isAway: boolean; readonly since: Instant } | null = null
  #begunAt: Instant = 0
  #epoch = 0
  #epochSince: Instant = 0

  constructor(world: World, report: Report) {
    this.#world = world
    this.#report = report
    const faults = world.plan.faults ?? []
    this.#mayForget = faults.some(({ kind }) => kind === 'node_disk_lost' || kind === 'swarm')
    if (world.faults !== null) world.controllers.onBegun(() => this.#begun())
    world.faults?.onSetBack(() => this.#setBack())
    if (world.faults !== null)
      world.bus.endpoint(null).onConnection?.((isConnected) => {
        this.#broker = { isAway: !isConnected, since: world.clock.now() }
      })
    world.listen((events) => events.forEach((event) => this.#heard(event)))
  }

  /** @param answer as given, whether or not it arrives */
  answered(asked: Envelope, answer: Envelope): void {
    const { body } = answer
    if (body.op === 'result' && 'valid_until_mono' in asked.body) this.#obeys(asked, asked.body, answer, body)
    else if ((body.op === 'lease' || body.op === 'welcome') && 'node_id' in asked.body) {
      this.#notReplaced(answer.epoch)
      this.#leases(asked, asked.body.node_id ?? '', body.settings.run_lease_ms, answer.epoch)
    } else if (body.op === 'state_reset' && 'node_id' in asked.body)
      this.#viewOf(asked.body.node_id ?? '').isReset = true
  }

  // ── servers ─────────────────────────────────────────────────────────────────

  #obeys(asked: Envelope, command: Command, answer: Envelope, result: CommandResult): void {
    const node = this.#nodeOfBoot(answer.boot)
    const tell = (detail: string): void =>
      this.#report(`${command.op} of attempt ${command.attempt}: ${detail}`, { taskId: command.task_id })
    if (result.outcome === 'accepted') {
      if (asked.epoch < answer.epoch)
        tell(`accepted from epoch ${asked.epoch}, the server has heard of ${answer.epoch} (R3)`)
      if (keyOf(command.node_boot) !== keyOf(answer.boot)) tell('accepted, but it was for another boot (R3)')
      if (answer.sent_mono > command.valid_until_mono)
        tell(`accepted ${answer.sent_mono - command.valid_until_mono} ms too late (R3)`)
    }
    if (command.op === 'start') this.#starts(node, command, answer, result, tell)
    if (command.op === 'swap_out' || command.op === 'swap_in') this.#swaps(command, result, tell)
  }

  #starts(
    node: string | null,
    command: Command,
    answer: Envelope,
    { outcome, reason }: CommandResult,
    tell: (detail: string) => void,
  ): void {
    if (node === null) return
    const view = this.#nodes.get(node)
    const key = `${node}/${command.task_id}`
    const before = this.#attempts.get(key) ?? 0
    if (outcome === 'accepted') {
      if (command.attempt <= before && !this.#mayForget)
        tell(`starts, after an answer about attempt ${before} (R3)`)
      const isPast =
        view !== undefined &&
        view.leaseBoot === keyOf(answer.boot) &&
        answer.sent_mono >= view.leaseUntilMono + ROUNDING_MS
      if (isPast)
        tell(`starts ${answer.sent_mono - view.leaseUntilMono} ms after the end of the run lease (R3, R4)`)
    }
    const isSettled =
      outcome === 'accepted' ||
      outcome === 'never_seen' ||
      (outcome === 'refused' && reason !== 'disk_failed')
    if (isSettled) this.#attempts.set(key, Math.max(before, command.attempt))
    if (outcome !== 'gone') return
    const living = [...this.#world.fleet.servers.values()].some(
      ({ attempts }) => attempts.get(command.task_id)?.attempt === command.attempt,
    )
    if (living) tell('reported gone, but it runs (R7)')
  }

  #swaps(
    command: Extract<Command, { op: 'swap_out' | 'swap_in' }>,
    result: CommandResult,
    tell: (detail: string) => void,
  ): void {
    const key = `${command.op}/${command.task_id}/${command.attempt}/${command.generation}`
    if (result.outcome !== 'accepted' || this.#obeyed.has(key)) return
    this.#obeyed.add(key)
    if (command.generation !== result.generation)
      tell(`of generation ${command.generation}, the server is at ${result.generation} (R12)`)
    const attempt = [...this.#world.fleet.servers.values()]
      .map(({ attempts }) => attempts.get(command.task_id))
      .find((each) => each?.attempt === command.attempt)
    if (command.op !== 'swap_out' || attempt === undefined) return
    if (attempt.noswap === 1) tell('it is noswap there (R12)')
    if (attempt.wantsGpu && !command.force_active) tell('it wants the GPU (R12)')
  }

  /** Returns the node of the server with this boot. */
  #nodeOfBoot(boot: Boot): string | null {
    for (const [nodeId, view] of this.#nodes)
      if (view.boot !== null && keyOf(view.boot) === keyOf(boot)) return nodeId
    return null
  }

  // ── controllers ─────────────────────────────────────────────────────────────

  #leases(
    { boot, seq, sent_mono: sentMono }: Envelope,
    nodeId: string,
    leaseMs: DurationMs,
    epoch: number,
  ): void {
    const view = this.#viewOf(nodeId)
    const isKnown = view.boot !== null && keyOf(view.boot) === keyOf(boot)
    // A replaced controller, until it notices, answers the boot that was the last when its successor began.
    if (view.boot !== null && !isKnown && boot.counter <= view.boot.counter && epoch < view.bootEpoch) return
    const tell = (detail: string): void => this.#report(`a lease is granted ${detail}`, { nodeId })
    if (view.boot !== null && boot.counter < view.boot.counter)
      tell(`to boot ${boot.counter}, after boot ${view.boot.counter} (R6)`)
    if (view.boot !== null && boot.counter === view.boot.counter && boot.random !== view.boot.random)
      tell(`to another server with boot ${boot.counter} (R6)`)
    const isSame = isKnown && view.snapshotEpoch === epoch
    view.snapshotEpoch = epoch
    if (isSame && seq <= view.snapshotSeq) tell(`to message ${seq}, after message ${view.snapshotSeq} (R6)`)
    const isLater = view.boot !== null && boot.counter > view.boot.counter
    if (view.boot === null || boot.counter >= view.boot.counter) {
      if (!isKnown) view.bootEpoch = epoch
      view.boot = boot
      view.snapshotSeq = isSame ? Math.max(seq, view.snapshotSeq) : seq
    }
    if (view.leaseBoot !== keyOf(boot) || sentMono >= view.leaseSentMono) {
      view.leaseBoot = keyOf(boot)
      view.leaseSentMono = sentMono
      view.leaseUntilMono = sentMono + leaseMs
    }
    // A replaced controller may answer until it notices; servers that have heard of its successor ignore it.
    if (epoch < this.#epoch) return
    const now = this.#world.clock.now()
    if (view.isReset && isLater) [view.isReset, view.anewAt, view.doubtEndedAt] = [false, now, view.endedAt]
    view.answeredAt = now
    if (leaseMs >= view.longestMs || now >= view.longestOverAt) {
      view.longestMs = leaseMs
      view.longestOverAt = overAfter(now, leaseMs, 1)
    }
    extend(view, now, leaseMs)
  }

  /**
   * Every node has a new window (R5) from the time when the controller read the store: it writes its epoch
   * first, possibly on a slow disk. The replaced controller may have answered meanwhile. The new one does not
   * know which snapshots were answered before.
   */
  #begun(): void {
    this.#begunAt = this.#world.clock.now()
    const startedAt = this.#world.controllers.startedAt
    const configuredMs = this.#world.controller.views.config().fields.run_lease_seconds * 1000
    for (const view of this.#nodes.values()) {
      view.answeredAt = Math.max(view.answeredAt, startedAt)
      extend(view, startedAt, startedAt < view.longestOverAt ? view.longestMs : configuredMs)
      if (view.wasReset) [view.anewAt, view.doubtEndedAt] = [this.#begunAt, view.endedAt]
      view.snapshotSeq = 0
    }
  }

  /**
   * The store has lost which boots and snapshots were answered, and which attempts were given up or
   * restarted; servers have not.
   */
  #setBack(): void {
    this.#epoch = 0
    this.#placedAt.clear()
    const lost = {
      boot: null,
      snapshotSeq: 0,
      isReset: false,
      anewAt: 0,
      doubtEndedAt: 0,
      ...{ longestMs: 0, longestOverAt: 0, overAt: 0, endedAt: 0 },
    }
    for (const view of this.#nodes.values()) {
      const wasReset = view.wasReset || view.isReset || view.anewAt > 0
      Object.assign(view, lost, { wasReset })
    }
  }

  #heard({ kind, nodeId, taskId, at, data }: Event): void {
    if (kind === 'task_placed' && taskId !== null) this.#placedAt.set(taskId, at)
    if (kind === 'node_status' && data['status'] === 'unreachable') this.#notDeaf(nodeId ?? '', at)
    const view = this.#nodes.get(nodeId ?? '')
    // Answers between the decision and its durability do not contradict it.
    if (view === undefined || this.#mayForget || view.answeredAt > at) return
    const isLost = kind === 'node_status' && data['status'] === 'unreachable'
    const isUnconfirmed = kind === 'task_returned' && data['reason'] === 'start_unconfirmed'
    const leases = isUnconfirmed ? 2 : isLost ? 1 : 0
    // A task without a time was placed before the store went back.
    const placedAt = this.#placedAt.get(taskId ?? '') ?? (view.wasReset ? 0 : at)
    const isInDoubt = placedAt < view.anewAt
    const earlyMs = (isLost ? view.overAt : isInDoubt ? view.doubtEndedAt : view.endedAt) - at
    const place = { nodeId: nodeId ?? '', ...(taskId === null ? {} : { taskId }) }
    if (leases > 0 && earlyMs > 0)
      this.#report(`given up ${earlyMs} ms before ${leases} leases have certainly ended (R5)`, place)
  }

  /**
   * A controller without a connection to the broker cannot declare a node unreachable, nor for one lease
   * after the connection is back (safety 3).
   */
  #notDeaf(nodeId: string, at: Instant): void {
    const broker = this.#broker
    // A controller that started since then has always been connected.
    if (broker === null || at < broker.since || (!broker.isAway && this.#begunAt > broker.since)) return
    const leaseMs = this.#world.controller.views.config().fields.run_lease_seconds * 1000
    const longestMs = this.#nodes.get(nodeId)?.longestMs ?? leaseMs
    const earlyMs = overAfter(broker.since, Math.min(leaseMs, longestMs), 1) - at
    if (broker.isAway) this.#report('given up while the broker connection is down (R5)', { nodeId })
    else if (earlyMs > 0)
      this.#report(`given up ${earlyMs} ms before one lease has passed since the broker was back (R5)`, {
        nodeId,
      })
  }

  #notReplaced(epoch: number): void {
    const now = this.#world.clock.now()
    if (epoch > this.#epoch) [this.#epoch, this.#epochSince] = [epoch, now]
    else if (epoch < this.#epoch && now > this.#epochSince + REPLACED_WITHIN_MS)
      this.#report(
        `a controller of epoch ${epoch} answers, ${now - this.#epochSince} ms after one of ` +
          `epoch ${this.#epoch} (R9)`,
      )
  }

  #viewOf(nodeId: string): NodeView {
    let view = this.#nodes.get(nodeId)
    if (view === undefined) {
      view = {
        leaseBoot: '',
        leaseSentMono: -1,
        leaseUntilMono: 0,
        answeredAt: 0,
        overAt: 0,
        endedAt: 0,
        isReset: false,
        anewAt: 0,
        doubtEndedAt: 0,
        wasReset: false,
        longestMs: 0,
        longestOverAt: 0,
        boot: null,
        bootEpoch: 0,
        snapshotSeq: 0,
        snapshotEpoch: 0,
      }
      this.#nodes.set(nodeId, view)
    }
    return view
  }
}

/** Another lease of that length may be valid from then on. */
function extend(view: NodeView, from: Instant, leaseMs: DurationMs): void {
  view.overAt = Math.max(view.overAt, overAfter(from, leaseMs, 1))
  view.endedAt = Math.max(view.endedAt, overAfter(from, leaseMs, 2))
}

/** When this number of consecutive leases is certainly over; a server's clock may run 5% slow. */
function overAfter(from: Instant, leaseMs: DurationMs, leases: number): Instant {
  return from + (leases * leaseMs * 105) / 100
}

function keyOf({ counter, random }: Boot): string {
  return `${counter}/${random}`
}
