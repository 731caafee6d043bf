/**
 * The core of a GPU server: the same state machine on a GPU host and in the simulator. Its inputs are
 * commands and device reports, its outputs device calls and messages; it implements protocol rules R1 to R12
 * (docs/protocol.md).
 */
import type { Envelope, NodeBody } from '../../protocol/envelope.ts'
import type { ListFiles, ReadFile } from '../../protocol/file-messages.ts'
import type { AttemptRef, ExpectProcess, NodeEvent, ReadAttempt, ReadLog } from '../../protocol/messages.ts'
import {
  MAX_ATTEMPTS_PER_NODE,
  MAX_FILE_BYTES,
  MAX_LISTED_FILES,
  MAX_LOG_BYTES,
} from '../../protocol/limits.ts'
import { leaderSubject, nodeSubject } from '../../protocol/subjects.ts'
import type { Mib, DeviceKind, Feature, MountFeature, TaskIdentityKind } from '../../protocol/units.ts'
import type { Bus, Reply } from '../../controller/ports/bus.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import { adopt } from './adoption.ts'
import type { Attempt } from './attempt.ts'
import { recordOf } from './attempt.ts'
import { blobReads } from './blob-reads.ts'
import { ChannelRequests, isOfChannel } from './channel-requests.ts'
import type { ChannelsPort } from './channels-port.ts'
import { Commands, isCommand } from './commands.ts'
import type { Device, DeviceListener } from './device.ts'
import { type ControllerMark, DurableState } from './durable-state.ts'
import { Envelopes } from './envelopes.ts'
import { EventSender } from './event-sender.ts'
import { Growths } from './growths.ts'
import { LeaseEnforcer } from './lease-enforcer.ts'
import { Ledger } from './ledger.ts'
import { RunLease } from './lease.ts'
import type { Parts } from './parts.ts'
import { Preparations } from './preparations.ts'
import { Presence } from './presence.ts'
import { Relief } from './relief.ts'
import { Runs } from './runs.ts'
import type { NodeStorage } from './storage.ts'
import { Swaps } from './swaps.ts'
import { TaskTable } from './task-table.ts'
import type { WorkFilesPort } from './work-files-port.ts'

export interface ServerCoreOptions {
  readonly nodeId: string
  readonly name: string
  readonly address: string
  readonly hostSwapMib: Mib
  /** Total bandwidth of copies through host memory; absent or null: not configured. */
  readonly hostLinkMibPerS?: number | null
  /** Tasks on this device can signal that they want the GPU. */
  readonly signalsWanted: boolean
  readonly deviceKind: DeviceKind
  /** True if commands run here; otherwise only leases do. */
  readonly allowExec: boolean
  /** Features for tasks that require them; absent: none. */
  readonly features?: readonly (Feature | MountFeature)[]
  /**
   * Maximum number of attempts at once, as reported to the controller; absent: the capacity of a snapshot.
   */
  readonly maxAttempts?: number
  readonly taskIdentity?: TaskIdentityKind
  readonly clock: Clock
  readonly random: RandomStream
  readonly bus: Bus
  readonly device: Device
  readonly storage: NodeStorage
  /** Work folders of attempts; absent: none can be read. */
  readonly files?: WorkFilesPort | null
  /** Channels into attempts; absent: none are opened. */
  readonly channels?: ChannelsPort | null
  /** Unchanged heartbeats are not enacted (simulation between faults). */
  readonly areHeartbeatsElided: boolean
  /** The controller refuses this server's hello; called once for each change of the reason. */
  readonly onRefused?: (reason: string) => void
}

export class ServerCore {
  readonly #options: ServerCoreOptions
  readonly #parts: Parts
  readonly #growths: Growths
  readonly #swaps: Swaps
  readonly #runs: Runs
  readonly #commands: Commands
  readonly #channels: ChannelRequests
  readonly #relief: Relief
  readonly #leaseEnforcer: LeaseEnforcer
  readonly #events: EventSender
  readonly #presence: Presence
  readonly #preparations: Preparations
  #isStopped = false
  /** The highest epoch that a controller announced. */
  #announcedEpoch = 0
  #unsubscribe: readonly (() => void)[] = []

  /** Throws the storage's error when the boot counter cannot be saved. */
  constructor(options: ServerCoreOptions) {
    const { clock, device, storage, random } = options
    this.#options = options
    const durable = new DurableState(storage, random)
    const envelopes = new Envelopes(clock, durable)
    this.#parts = {
      clock,
      device,
      durable,
      envelopes,
      lease: new RunLease(options.areHeartbeatsElided),
      ledger: new Ledger(() => device.gpus(), options.hostSwapMib),
      tasks: new TaskTable(),
      emit: (event) => {
        durable.outbox.add(event)
        this.#events.plan()
      },
    }
    this.#growths = new Growths(this.#parts)
    this.#runs = new Runs(this.#parts, this.#growths, () => this.#events.plan())
    this.#swaps = new Swaps(this.#parts, this.#growths)
    const { allowExec, features = [] } = options
    const blobsOf = blobReads(options.nodeId, options.bus, envelopes)
    this.#preparations = new Preparations(device, blobsOf, () => this.#presence.heartbeatNow())
    const preparations = this.#preparations
    const limits = { allowExec, features, maxAttempts: maxAttemptsOf(options), blobsOf, preparations }
    this.#commands = new Commands(this.#parts, this.#runs, this.#swaps, this.#growths, limits)
    this.#channels = new ChannelRequests(this.#parts, options.channels ?? null)
    this.#relief = new Relief(this.#parts, this.#swaps)
    this.#leaseEnforcer = new LeaseEnforcer(this.#parts, this.#runs)
    this.#events = this.#createEventSender()
    this.#presence = this.#createPresence()
    adopt(this.#parts, this.#growths)
    device.observe(this.#listener())
  }

  /** The living attempts by task. */
  get attempts(): ReadonlyMap<string, Readonly<Attempt>> {
    return this.#parts.tasks.byTask
  }

  /** Applies the reserve of the next heartbeat's answer, for a simulation without heartbeats. */
  keepReserve(mib: Mib): void {
    this.#parts.ledger.reserveMib = mib
  }

  /** Reports a change that the next heartbeat would contain, for a simulation without heartbeats. */
  heartbeatNow(): void {
    this.#presence.heartbeatNow()
  }

  /** Subscribes to commands and announcements, and sends hello until the server is welcome. */
  start(): void {
    const { bus, nodeId } = this.#options
    this.#unsubscribe = [
      bus.subscribe(nodeSubject(nodeId, 'command'), (message, _subject, reply) =>
        this.#command(message, reply),
      ),
      bus.subscribe(leaderSubject(), (message) => this.#announced(message)),
    ]
    this.#presence.greet()
  }

  /** The connection to the bus is back. */
  reconnected(): void {
    this.#presence.heartbeatSoon()
  }

  /** Ends every task, each with its own grace; reported as stopped. */
  endTasks(): void {
    for (const attempt of [...this.#parts.tasks.all()])
      this.#runs.stop(attempt, 'stopped', attempt.stopGraceMs)
  }

  /** True if no attempt lives here and every end is acknowledged. */
  get isQuiet(): boolean {
    return this.#parts.tasks.size === 0 && this.#parts.durable.outbox.isEmpty
  }

  /**
   * The process ends; tasks live on under their guards (R4). Late callbacks of bus and device have no effect.
   */
  stop(): void {
    this.#isStopped = true
    for (const end of this.#unsubscribe) end()
    this.#preparations.dropAll()
    this.#presence.stop()
    this.#leaseEnforcer.stop()
    this.#events.close()
    this.#parts.tasks.clear()
  }

  /**
   * A controller of a higher epoch leads: the server reports to it without waiting for the next heartbeat. An
   * announcement is only a hint: that controller is obeyed once it has answered. Each epoch counts once, so
   * that a controller that does not answer gets no more heartbeats than others.
   */
  #announced({ epoch, body }: Envelope): void {
    const known = Math.max(this.#announcedEpoch, this.#parts.durable.highestEpoch)
    if (body.op !== 'leader' || epoch <= known) return
    this.#announcedEpoch = epoch
    this.#presence.heartbeatSoon()
  }

  #command(message: Envelope, reply: Reply): void {
    const { body } = message
    if (this.#isStopped) return
    if (body.op === 'read_log') this.#readLog(body, reply)
    else if (body.op === 'read_attempt') this.#readAttempt(body, reply)
    else if (body.op === 'list_files') this.#listFiles(body, reply)
    else if (body.op === 'read_file') this.#readFile(body, reply)
    else if (body.op === 'expect_process')
      reply(this.#parts.envelopes.seal(this.#expectProcess(message, body)))
    else if (isOfChannel(body)) this.#channels.answer(message, body, reply)
    else if (isCommand(body)) {
      if (this.#isUnjudged(message)) return
      const result = this.#commands.answer(message, body)
      reply(this.#parts.envelopes.seal(result))
      if (body.op === 'start' && result.outcome === 'refused') this.#presence.heartbeatAfterRefusal()
    }
  }

  /**
   * Returns true for a new controller that this server has accepted no answer from: it may not know this
   * server's mark. It gets no answer, as if its command were lost, and repeats it.
   */
  #isUnjudged(message: Envelope): boolean {
    const { durable } = this.#parts
    return !durable.isObeyed(message) && !durable.isOfOtherController(message)
  }

  #readLog({ task_id, attempt, stream, offset, max_bytes }: ReadLog, reply: Reply): void {
    const { device, envelopes } = this.#parts
    device.readOutput(task_id, attempt, stream, offset, Math.min(max_bytes, MAX_LOG_BYTES), (part) => {
      if (this.#isStopped) return
      if (part === null) return reply(envelopes.seal({ op: 'refused', reason: 'unknown_attempt' }))
      const { base64, isEnded } = part
      reply(
        envelopes.seal({
          op: 'log',
          task_id,
          attempt,
          stream,
          offset: part.offset,
          data: base64,
          is_ended: isEnded,
        }),
      )
    })
  }

  #listFiles({ task_id, attempt, path, after, max_items }: ListFiles, reply: Reply): void {
    const { envelopes } = this.#parts
    const { files = null } = this.#options
    if (files === null) return reply(envelopes.seal({ op: 'refused', reason: 'unknown_attempt' }))
    const what = { path, after, maxItems: Math.min(max_items, MAX_LISTED_FILES) }
    files.list(task_id, attempt, what, (answer) => {
      if (this.#isStopped) return
      if ('refused' in answer) return reply(envelopes.seal({ op: 'refused', reason: answer.refused }))
      const { items, isComplete } = answer
      reply(envelopes.seal({ op: 'files', task_id, attempt, items, is_complete: isComplete }))
    })
  }

  #readFile({ task_id, attempt, path, offset, max_bytes }: ReadFile, reply: Reply): void {
    const { envelopes } = this.#parts
    const { files = null } = this.#options
    if (files === null) return reply(envelopes.seal({ op: 'refused', reason: 'unknown_attempt' }))
    const what = { path, offset, maxBytes: Math.min(max_bytes, MAX_FILE_BYTES) }
    files.read(task_id, attempt, what, (answer) => {
      if (this.#isStopped) return
      if ('refused' in answer) return reply(envelopes.seal({ op: 'refused', reason: answer.refused }))
      const { base64: data, bytes, modifiedMs: modified_ms, inode } = answer
      reply(envelopes.seal({ op: 'file', task_id, attempt, path, offset, data, bytes, modified_ms, inode }))
    })
  }

  #readAttempt({ task_id, attempt }: ReadAttempt, reply: Reply): void {
    const { device, durable, envelopes, tasks } = this.#parts
    const living = tasks.find(task_id, attempt)
    if (living === null) return reply(envelopes.seal({ op: 'refused', reason: 'unknown_attempt' }))
    const addresses = device.addressesOf?.(task_id, attempt)
    reply(envelopes.seal(recordOf(living, durable.described(task_id, attempt), addresses)))
  }

  /** Changes nothing that a restart must preserve: an unused token is void then. */
  #expectProcess(mark: ControllerMark, { task_id, attempt, token_sha256 }: ExpectProcess): NodeBody {
    const { device, durable, tasks } = this.#parts
    if (durable.isOfOtherController(mark)) return { op: 'refused', reason: 'stale_epoch' }
    const living = tasks.find(task_id, attempt)
    if (living === null) return { op: 'refused', reason: 'unknown_attempt' }
    const socket = living.isLease ? (device.expectProcess?.(task_id, attempt, token_sha256) ?? null) : null
    if (socket === null) return { op: 'refused', reason: 'no_process_expected' }
    return { op: 'process_expected', task_id, attempt, socket }
  }

  #createEventSender(): EventSender {
    const { nodeId, bus, clock, random } = this.#options
    const { durable, envelopes } = this.#parts
    return new EventSender({
      nodeId,
      subject: nodeSubject(nodeId, 'event'),
      bus,
      clock,
      random,
      durable,
      envelopes,
      onAcknowledged: (events) => this.#acknowledged(events),
      onUnexpectedAnswer: (asked, answer) => this.#presence.onUnexpectedAnswer(asked, answer),
    })
  }

  #createPresence(): Presence {
    const { nodeId, bus, random } = this.#options
    return new Presence(this.#parts, {
      identity: { features: [], ...this.#options, maxAttempts: maxAttemptsOf(this.#options) },
      subjects: { hello: nodeSubject(nodeId, 'hello'), heartbeat: nodeSubject(nodeId, 'heartbeat') },
      bus,
      random,
      onWelcome: () => this.#events.open(),
      onBootUnknown: () => this.#events.close(),
      onLease: (sentMono, lengthMs) => {
        this.#events.repeatToNewController()
        this.#growths.askNewController()
        return this.#leaseEnforcer.renewed(sentMono, lengthMs)
      },
      onRefused: (reason) => this.#options.onRefused?.(reason),
      onStop: (refs) => this.#stopAll(refs),
      onImagesAsked: (images) => this.#preparations.asked(images),
      preparations: () => this.#preparations.reports(),
    })
  }

  #listener(): DeviceListener {
    return {
      exited: (taskId, attempt, end) => this.#runs.exited(taskId, attempt, end),
      gpuWanted: (taskId, attempt) => this.#runs.used(taskId, attempt, true, 0),
      gpuUsed: (taskId, attempt, idleMs) => this.#runs.used(taskId, attempt, false, idleMs),
      allocationWanted: (taskId, attempt, mib) => {
        const living = this.#parts.tasks.find(taskId, attempt)
        if (living !== null) this.#growths.wanted(living, mib)
      },
      freeMeasured: (gpu, freeMib) => this.#relief.measured(gpu, freeMib),
      restStays: (taskId, attempt, mib) => {
        const living = this.#parts.tasks.find(taskId, attempt)
        return living !== null && this.#swaps.restStays(living, mib)
      },
    }
  }

  /** From here on a silent controller does not end these attempts (R4). */
  #acknowledged(events: readonly NodeEvent[]): void {
    const { device, durable, tasks } = this.#parts
    for (const event of events) {
      if (event.kind !== 'started') continue
      const attempt = tasks.find(event.task_id, event.attempt)
      if (attempt === null) continue
      attempt.isStartAcknowledged = true
      durable.keep(attempt)
      if (attempt.onNodeLoss === 'wait') device.setLeased(attempt.taskId, attempt.attempt, false)
    }
    durable.persist()
  }

  #stopAll(refs: readonly AttemptRef[]): void {
    for (const ref of refs) {
      this.#preparations.drop(ref)
      const attempt = this.#parts.tasks.find(ref.task_id, ref.attempt)
      // The controller gave it up, and it may run elsewhere: no grace.
      if (attempt !== null) this.#runs.stop(attempt, 'stopped', 0)
    }
  }
}

function maxAttemptsOf({ maxAttempts = MAX_ATTEMPTS_PER_NODE }: ServerCoreOptions): number {
  return Math.min(maxAttempts, MAX_ATTEMPTS_PER_NODE)
}
