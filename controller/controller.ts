/** The complete controller, created by `headroom serve` and by the simulator. Only the ports differ. */
import type { ControllerBody, Envelope } from '../protocol/envelope.ts'
import type { Instant } from '../protocol/units.ts'
import { PROTOCOL_VERSION } from '../protocol/limits.ts'
import type { ConfigFields } from './model/config.ts'
import type { Event } from './model/event.ts'
import { NO_OWNER_LIMITS, type OwnerLimits } from './model/owner-limits.ts'
import type { Commands } from './model/command.ts'
import { DurableEvents, type EventSource } from './engine/durable-events.ts'
import { Engine } from './engine/engine.ts'
import { createViews } from './query/live-views.ts'
import type { EngineCheckpoint } from './engine/engine-checkpoint.ts'
import type { PendingIds, PendingRestorer } from './ports/pending-ids.ts'
import { TASK_LEASE_MS } from './engine/inputs/commands/leases.ts'
import { aheadOf } from './engine/inputs/nodes/contacts.ts'
import { mayBeSent } from './engine/may-be-sent.ts'
import { isStillWanted } from './engine/apply/node-commands.ts'
import { isPreparationWanted } from './engine/apply/lifecycle/preparations.ts'
import type { Views } from './query/views.ts'
import type { ClusterReading } from './query/cluster-reading.ts'
import type { AccessRegistry } from './engine/inputs/commands/access-registry.ts'
import type { VictimOverride } from './policy/swap/victim-override.ts'
import { overridden } from './policy/swap/victim-override.ts'
import type { Bus } from './ports/bus.ts'
import type { Clock } from './ports/clock.ts'
import type { Random } from './ports/random.ts'
import type { Sealer } from './ports/sealer.ts'
import type { SeriesArchive } from './ports/series-archive.ts'
import type { Store } from './ports/store.ts'
import type { TaskChannels } from './ports/task-channels.ts'
import type { TaskFiles } from './ports/task-files.ts'
import type { TaskLogs } from './ports/task-logs.ts'
import type { Blobs } from './ports/blobs.ts'
import type { InputTap } from './recording/input-recorder.ts'
import { Series } from './series/series.ts'
import type { ClientAudit } from './wire/client-audit.ts'
import { listenToClients } from './wire/client-requests.ts'
import type { StoreKind } from './model/store-kind.ts'
import { openedEnvironment } from './model/environment-values.ts'
import { Freshness } from './wire/freshness.ts'
import { listenToNodes } from './wire/inbound.ts'
import { MessageTally } from './wire/message-counts.ts'
import type { MessageCounts, RefusedReason } from './wire/message-counts.ts'
import { Outbound } from './wire/outbound.ts'
import type { OutboundDepth, OutboundCheckpoint } from './wire/outbound.ts'
import { publishLeader } from './wire/leader-announcements.ts'
import { LivenessTimer, type LivenessTimerCheckpoint } from './wire/liveness-timer.ts'
import { createTaskLogs } from './wire/task-logs.ts'
import { createTaskChannels } from './wire/task-channels.ts'
import { createTaskFiles } from './wire/task-files.ts'
import { listenToBlobReads, type BlobReadsOptions } from './wire/blob-reads.ts'
import { CHANNEL_LIMITS, NodeReads } from './wire/node-reads.ts'

export interface ControllerPorts {
  readonly clock: Clock
  readonly random: Random
  readonly bus: Bus
  readonly store: Store
}

export interface ControllerOptions {
  /** The configuration while nothing is persisted (specification 2.1). */
  readonly initialConfig?: Partial<ConfigFields>
  /**
   * Simulation only: heartbeats that change nothing are elided; leases of nodes and tasks, and clock samples,
   * hold between faults.
   */
  readonly areHeartbeatsElided?: boolean
  /** Samples the cluster over time; `archive` stores the samples beyond the process. Omitted: no samples. */
  readonly series?: { readonly archive: SeriesArchive | null }
  /** Lease of the leader among several controllers. Default: there are no other controllers. */
  readonly leaseMs?: number
  /** Default: no limits. */
  readonly ownerLimits?: OwnerLimits
  /** Simulation only: observes swap-out decisions, and may replace a victim. */
  readonly victimOverride?: VictimOverride | null
  /** Requests per second of all clients of the bus together; 0, the default: no limit. */
  readonly clientRequestsPerSecond?: number
  /** Receives an audit entry for every change by a client of the bus. Default: none. */
  readonly clientAudit?: ClientAudit
  /** Only servers that match the kind of store may join. Default: all servers. */
  readonly storeKind?: StoreKind
  /** Opens the values of environment variables for the node of a task. Omitted: none are given. */
  readonly sealer?: Sealer
  /** Uploaded files of tasks. Omitted: nodes are given none, and no task can have any. */
  readonly blobs?: Blobs
  /** Sees all inputs: a recording, or a replay. Default: no tap. */
  readonly inputTap?: InputTap
  /** Id of this process: announced on the bus with the epoch. Omitted: not announced. */
  readonly leaderId?: string
  /** Called with every event, in order, once it is durable. */
  readonly onEvents?: (events: readonly Event[]) => void
  /** Called for a refused message with the claimed node or client (null: unknown) and the reason. */
  readonly onRefused?: (senderId: string | null, reason: string) => void
  /** The store failed: acknowledge nothing more, end the process (R10). */
  readonly onFault?: (fault: unknown) => void
}

/**
 * The state of a controller between two inputs, as JSON values: one restored from it makes the same
 * decisions.
 */
export interface ControllerCheckpoint {
  readonly engine: EngineCheckpoint
  readonly outbound: OutboundCheckpoint
  readonly freshness: ReturnType<Freshness['capture']>
  readonly livenessTimer: LivenessTimerCheckpoint | null
}

/** Called when the controller begins and ends to decide and commit. */
export type Stopwatch = NonNullable<Engine['stopwatch']>

export interface Controller {
  readonly status: Pick<Engine, 'epoch' | 'process' | 'isCommitting' | 'isFaulty' | 'durableEventSeq'>
  readonly cluster: ClusterReading
  readonly access: AccessRegistry
  readonly commands: Commands
  readonly views: Views
  readonly series: Series
  /** Publishes every event once it is durable. */
  readonly events: EventSource
  readonly logs: TaskLogs
  readonly files: TaskFiles
  readonly channels: TaskChannels
  readonly messages: MessageCounts
  /** Unanswered commands to nodes. */
  outboundDepth(): OutboundDepth
  /** Null: decisions are no longer measured. */
  timeDecisions(stopwatch: Stopwatch | null): void
  /** Loads the durable state and starts listening. Rejects with StoreFault. */
  start(): Promise<void>
  /** Captures the state between two inputs, after the start, without changing it. */
  capture(ids: PendingIds): ControllerCheckpoint
  /**
   * Instead of `start`: continues from a checkpoint and starts listening. Nothing is read, written or sent
   * meanwhile.
   */
  restore(checkpoint: ControllerCheckpoint, restorer: PendingRestorer): void
  /** Stops listening and closes the store; acknowledged changes are durable. */
  stop(): Promise<void>
}

function clientsOf(
  { ownerLimits = NO_OWNER_LIMITS, clientRequestsPerSecond = 0, clientAudit }: ControllerOptions,
  engine: Engine,
) {
  return {
    ...{ ownerLimits, requestsPerSecond: clientRequestsPerSecond, audit: clientAudit ?? null },
    isFaulty: () => engine.isFaulty,
  }
}

export function createController(given: ControllerPorts, options: ControllerOptions = {}): Controller {
  const isElided = options.areHeartbeatsElided ?? false
  const { ownerLimits = NO_OWNER_LIMITS, initialConfig = {}, storeKind = null, inputTap } = options
  inputTap?.begins(given.clock, {
    initialConfig,
    ownerLimits,
    areHeartbeatsElided: isElided,
    ...(storeKind === null ? {} : { storeKind }),
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
  })
  const ports = inputTap?.ports(given) ?? given
  const { clock, bus } = ports
  const freshness = new Freshness(isElided)
  const sender = { boot: { counter: 0, random: 'controller' }, idPrefix: '' }
  const envelope = numbered((seq, body) => sealed(engine, sender, clock.now(), seq, body))
  const events = new DurableEvents(options.onEvents)
  const engine = new Engine({
    ...ports,
    ...(inputTap === undefined ? {} : { inputTap }),
    initialConfig,
    ownerLimits,
    ...(options.victimOverride ? { victimPolicy: overridden(options.victimOverride) } : {}),
    taskLeaseMs: isElided ? null : TASK_LEASE_MS,
    ...(options.leaseMs === undefined ? {} : { leaseMs: options.leaseMs }),
    send: (effect) => outbound.send(effect),
    onResumed: () => outbound.resume(),
    onAnswered: (nodeId) => outbound.answered(nodeId),
    onEvents: (list) => events.publish(list),
    onFault: options.onFault ?? (() => {}),
  })
  const wire = { bus, clock, freshness, envelope }
  const outbound = new Outbound({
    ...wire,
    random: ports.random.stream('outbound'),
    runLeaseMs: () => engine.cluster.policy.runLeaseMs,
    reserveMib: (nodeId) => engine.cluster.nodes.get(nodeId)?.gpus[0]?.reserveMib ?? null,
    isWanted: (effect) => {
      const task = engine.cluster.tasks.get(effect.taskId)
      return effect.kind === 'prepare'
        ? isPreparationWanted(effect, task)
        : isStillWanted(effect, task?.placement)
    },
    mayLeave: (effect) => mayBeSent(engine.cluster, effect),
    valuesOf: (environment, owner) => openedEnvironment(options.sealer ?? null, environment, owner),
    onResult: (nodeId, command, result, seq) => engine.commandResult(nodeId, command, result, seq),
  })
  const commands = inputTap?.commands(engine.commands) ?? engine.commands
  // Views decide nothing, so they are not tapped.
  const views = createViews(engine, given.clock, ports.store.reads, isElided)
  const series = new Series(views, events)
  const messages = new MessageTally()
  const livenessTimer = new LivenessTimer(engine, clock)
  const mayAsk = (nodeId: string): boolean => aheadOf(engine.cluster, nodeId) === null
  const reads = new NodeReads(given.bus, envelope, mayAsk)
  const channels = createTaskChannels(new NodeReads(given.bus, envelope, mayAsk, CHANNEL_LIMITS))
  let stops: readonly (() => void)[] = []
  const listen = (): void => {
    sender.boot.counter = engine.epoch
    sender.idPrefix = `c${engine.epoch}.`
    const onRefused = counted(messages, options.onRefused)
    const nodes = { ...wire, engine, storeKind, onRefused, onLate: () => (messages.late += 1) }
    stops = [
      ...[listenToBroker(bus, engine), listenToNodes(nodes)],
      listenToClients({ ...clientsOf(options, engine), ...wire, commands, views, bus: given.bus, onRefused }),
      ...servingBlobs(options.blobs, { engine, bus: given.bus, envelope, onRefused }),
      () => livenessTimer.stop(),
      () => series.stop(),
      announceLeader(options.leaderId, given, envelope, () => engine.epoch),
    ]
  }
  return {
    ...{ status: engine, cluster: engine.cluster, access: engine.access },
    ...{ commands, views, series, events, messages },
    ...{ logs: createTaskLogs(reads), files: createTaskFiles(reads), channels },
    outboundDepth: () => outbound.depth(),
    timeDecisions: (stopwatch) => (engine.stopwatch = stopwatch),
    start: () =>
      engine.start(() => {
        listen()
        if (!isElided) livenessTimer.begin()
        if (options.series !== undefined) series.start(given.clock, options.series.archive)
      }),
    ...checkpointing({ engine, outbound, freshness, livenessTimer }, listen),
    async stop() {
      for (const stop of stops) stop()
      outbound.close()
      await options.series?.archive?.close()
      await ports.store.close()
    },
  }
}

function servingBlobs(
  blobs: Blobs | undefined,
  how: Omit<BlobReadsOptions, 'blobs'>,
): readonly (() => void)[] {
  return blobs === undefined ? [] : [listenToBlobReads({ ...how, blobs })]
}

/** A bus without a broker is never away. */
function listenToBroker(bus: Bus, engine: Engine): () => void {
  return bus.onConnection?.((isConnected) => engine.brokerConnection(isConnected)) ?? (() => {})
}

/** Announces the leader; returns a function that stops. This is not an input, so replays do not announce. */
function announceLeader(
  id: string | undefined,
  { bus, clock }: ControllerPorts,
  envelope: (body: ControllerBody) => Envelope,
  epoch: () => number,
): () => void {
  return id === undefined ? () => {} : publishLeader({ bus, clock, envelope, epoch, id })
}

function counted(
  tally: MessageTally,
  onRefused: ControllerOptions['onRefused'],
): (senderId: string | null, reason: RefusedReason) => void {
  return (senderId, reason) => {
    tally.refused[reason] += 1
    onRefused?.(senderId, reason)
  }
}

interface Checkpointed {
  readonly engine: Engine
  readonly outbound: Outbound
  readonly freshness: Freshness
  readonly livenessTimer: LivenessTimer
}

function checkpointing(
  { engine, outbound, freshness, livenessTimer }: Checkpointed,
  listen: () => void,
): Pick<Controller, 'capture' | 'restore'> {
  return {
    capture: (ids) => ({
      engine: engine.capture(ids),
      outbound: outbound.capture(ids),
      freshness: freshness.capture(),
      livenessTimer: livenessTimer.capture(ids),
    }),
    restore(checkpoint, restorer) {
      freshness.restore(checkpoint.freshness)
      engine.restore(checkpoint.engine, restorer)
      outbound.restore(checkpoint.outbound, restorer)
      livenessTimer.restore(checkpoint.livenessTimer, restorer)
      listen()
    },
  }
}

interface Sender {
  readonly boot: { counter: number; readonly random: string }
  idPrefix: string
}

/** Wraps a body with the mark of the store: what is durable now. */
function sealed(
  engine: Engine,
  { boot, idPrefix }: Sender,
  now: Instant,
  seq: number,
  body: ControllerBody,
): Envelope {
  const { epoch, process: controller, durableEventSeq: event_seq } = engine
  return {
    v: PROTOCOL_VERSION,
    id: `${idPrefix}${seq}`,
    sent_mono: now,
    boot,
    seq,
    epoch,
    controller,
    event_seq,
    body,
  }
}

/** Numbers envelopes 1, 2, 3, … */
function numbered(make: (seq: number, body: ControllerBody) => Envelope): (body: ControllerBody) => Envelope {
  let seq = 0
  return (body) => make((seq += 1), body)
}
