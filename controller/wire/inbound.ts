/** Messages of nodes become calls of the engine; answers are sent once they are durable. */
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import type { Heartbeat, Hello, NodeEvents, NodeSettings } from '../../protocol/messages.ts'
import { MAX_REPORTED_IMAGES } from '../../protocol/limits.ts'
import { DEFAULT_PREFIX, everyNode, nodeIdOf } from '../../protocol/subjects.ts'
import { refusedDevice, type StoreKind } from '../model/store-kind.ts'
import type { Engine } from '../engine/engine.ts'
import type { LiveNode } from '../state/facts.ts'
import { isFromBeforeAhead, type NodeReport } from '../engine/inputs/nodes/contacts.ts'
import type { SnapshotAnswer } from '../engine/inputs/nodes/node-registry.ts'
import { bootOrder } from '../engine/inputs/nodes/node-registry.ts'
import type { Bus, Reply } from '../ports/bus.ts'
import type { Clock } from '../ports/clock.ts'
import type { Freshness } from './freshness.ts'
import type { RefusedReason } from './message-counts.ts'

export interface InboundOptions {
  readonly engine: Engine
  readonly bus: Bus
  readonly clock: Clock
  readonly freshness: Freshness
  readonly envelope: (body: ControllerBody) => Envelope
  /** The kind of servers that may join; null: all. */
  readonly storeKind: StoreKind | null
  /** Called for a payload of another node or an old boot; it was refused. */
  readonly onRefused: (nodeId: string | null, reason: RefusedReason) => void
  /** Called for a message that a later one has overtaken, or a duplicate: it has no effect. */
  readonly onLate: () => void
}

/** @returns a function that stops listening */
export function listenToNodes(o: InboundOptions): () => void {
  const ends = [
    o.bus.subscribe(everyNode('hello'), (message, subject, reply) =>
      receive(o, 'hello', message, subject, reply),
    ),
    o.bus.subscribe(everyNode('heartbeat'), (message, subject, reply) =>
      receive(o, 'heartbeat', message, subject, reply),
    ),
    o.bus.subscribe(everyNode('event'), (message, subject, reply) =>
      receive(o, 'events', message, subject, reply),
    ),
  ]
  return () => ends.forEach((end) => end())
}

function receive(
  o: InboundOptions,
  op: 'hello' | 'heartbeat' | 'events',
  message: Envelope,
  subject: string,
  reply: Reply,
): void {
  const { body } = message
  if (body.op !== op || !speaksFor(subject, body.node_id))
    return refuse(o, nodeIdOf(subject), 'wrong_sender', reply)
  const nodeId = body.node_id
  const verdict = o.engine.judge(message)
  // Not even a refusal: the node would take its epoch for the newest and forget what it has heard of.
  if (verdict !== 'known' && verdict !== 'accepted_loss')
    return o.engine.heardAhead(contactOf(body), verdict, message)
  if (isFromBeforeAhead(o.engine.cluster, nodeId, message)) return o.onLate()
  if (verdict === 'accepted_loss') {
    o.engine.heardOfLoss(nodeId)
    // Its hello or heartbeat comes first: only their answer is durable together with what the node runs.
    if (body.op === 'events' && !o.engine.cluster.contacts.has(nodeId)) return o.onLate()
  }
  const refusal = verdict === 'accepted_loss' ? withMarkOf(message, reply) : reply
  const node = o.engine.cluster.nodes.get(nodeId)
  if (body.op === 'hello') return receiveHello(o, node, message as Envelope<Hello>, reply, refusal)
  if (node === undefined || bootOrder(node, message.boot) !== 'known')
    return refuse(o, nodeId, 'unknown_node', refusal)
  updateContact(o, node, message)
  if (body.op === 'events') receiveEvents(o, node, body, message.seq, reply)
  else if (message.seq > node.snapshotSeq) receiveHeartbeat(o, node, body, message.seq, reply)
  else o.onLate()
}

function receiveEvents(
  { engine, envelope }: InboundOptions,
  node: LiveNode,
  { entries }: NodeEvents,
  seq: number,
  reply: Reply,
): void {
  const upTo = entries.at(-1)?.n ?? 0
  engine.nodeEvents(node, entries, seq, () => reply(envelope({ op: 'events_ack', up_to: upTo })))
}

function receiveHeartbeat(
  o: InboundOptions,
  node: LiveNode,
  heartbeat: Heartbeat,
  seq: number,
  reply: Reply,
): void {
  o.engine.heartbeat(node, heartbeat, seq, (answer) =>
    reply(o.envelope(leaseFor(o, 'lease', node.id, answer))),
  )
}

/** A hello overtaken by a later message of its boot is not answered: the node no longer waits for it (R6). */
function receiveHello(
  o: InboundOptions,
  node: LiveNode | undefined,
  message: Envelope<Hello>,
  reply: Reply,
  refusal: Reply,
): void {
  const { body, boot, seq } = message
  const mismatch = o.storeKind === null ? null : refusedDevice(o.storeKind, body.device)
  if (mismatch !== null) return refuse(o, body.node_id, mismatch, refusal)
  const standing = node === undefined ? 'later' : bootOrder(node, boot)
  if (node !== undefined && standing === 'contradictory') {
    o.onRefused(node.id, 'contradictory_boot')
    o.engine.nodeReset(node, () =>
      refusal(o.envelope({ op: 'state_reset', counter_above: node.boot.counter })),
    )
    return
  }
  if (node !== undefined && standing === 'known' && seq <= node.snapshotSeq) return o.onLate()
  o.freshness.heard(body.node_id, boot, message.sent_mono, o.clock.now())
  o.engine.hello(body, boot, seq, (answer) => reply(o.envelope(leaseFor(o, 'welcome', body.node_id, answer))))
}

function contactOf(body: NodeMessage): NodeReport {
  return {
    nodeId: body.node_id,
    name: body.op === 'hello' ? body.name : null,
    tasks: body.op === 'events' ? null : body.tasks,
  }
}

type NodeMessage = Hello | Heartbeat | NodeEvents

/** A message that arrives late says nothing about the present. */
function updateContact(o: InboundOptions, node: LiveNode, { boot, sent_mono, seq }: Envelope): void {
  if (seq <= node.contact.heardSeq) return
  const now = o.clock.now()
  o.freshness.heard(node.id, boot, sent_mono, now)
}

/** `gpu.v1.node.<node_id>.<verb>`: the payload must name the node of the subject. */
function speaksFor(subject: string, nodeId: string): boolean {
  const at = DEFAULT_PREFIX.length + 6
  return subject.startsWith(nodeId, at) && subject.charCodeAt(at + nodeId.length) === DOT
}

const DOT = 46

/**
 * The lease counts from when the node sent the answered message: before now (R5). The engine has recorded it.
 */
function leaseFor(
  o: InboundOptions,
  op: 'welcome' | 'lease',
  nodeId: string,
  { stop, unknown }: SnapshotAnswer,
): ControllerBody {
  const { policy, nodes, waitingImages } = o.engine.cluster
  const node = nodes.get(nodeId)
  const settings: NodeSettings = {
    heartbeat_ms: policy.heartbeatMs,
    run_lease_ms: policy.runLeaseMs,
    safety_reserve_mib: node?.reserveOverrideMib ?? policy.safetyReserveMib,
  }
  const images = node?.features.includes('prepare') === true ? imagesToLookFor(waitingImages) : []
  return {
    ...{ op, settings, stop },
    ...(unknown.length === 0 ? {} : { unknown }),
    ...(images.length === 0 ? {} : { images }),
  }
}

/** Returns the images of the tasks that have waited longest, as many as a message may contain. */
function imagesToLookFor(waiting: ReadonlyMap<string, number>): readonly string[] {
  const images: string[] = []
  for (const image of waiting.keys()) if (images.push(image) === MAX_REPORTED_IMAGES) break
  return images
}

/**
 * Answers with the mark that the node has. A new mark would take from the node that it has heard of a loss,
 * and this controller may die before what the node runs is recorded.
 */
function withMarkOf({ epoch, controller, event_seq }: Envelope, reply: Reply): Reply {
  return (answer) => {
    const { controller: _own, event_seq: _ownSeq, ...unmarked } = answer
    reply({
      ...unmarked,
      epoch,
      ...(controller === undefined ? {} : { controller }),
      ...(event_seq === undefined ? {} : { event_seq }),
    })
  }
}

function refuse(o: InboundOptions, nodeId: string | null, reason: RefusedReason, reply: Reply): void {
  o.onRefused(nodeId, reason)
  reply(o.envelope({ op: 'refused', reason }))
}
