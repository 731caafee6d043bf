/** Messages of nodes become calls of the engine; the answers go out once what they say is durable. */
import type { AttemptRef, ControllerBody, Envelope, NodeSettings } from '../../protocol/messages.ts'
import { DEFAULT_PREFIX, everyNode, nodeIdOf } from '../../protocol/subjects.ts'
import type { Engine } from '../engine/engine.ts'
import type { LiveNode } from '../engine/live.ts'
import type { Bus, Reply } from '../ports/bus.ts'
import type { Clock } from '../ports/clock.ts'
import type { Freshness } from './freshness.ts'

export interface InboundOptions {
  readonly engine: Engine
  readonly bus: Bus
  readonly clock: Clock
  readonly freshness: Freshness
  readonly envelope: (body: ControllerBody) => Envelope
  /** A payload that speaks for another node, or an old boot: refused, and told to somebody. */
  readonly onRefused: (nodeId: string | null, reason: string) => void
}

/** @returns a function that stops listening. */
export function listenToNodes(o: InboundOptions): () => void {
  const ends = [
    o.bus.subscribe(everyNode('hello'), (message, subject, reply) => receive(o, 'hello', message, subject, reply)),
    o.bus.subscribe(everyNode('heartbeat'), (message, subject, reply) => receive(o, 'heartbeat', message, subject, reply)),
    o.bus.subscribe(everyNode('event'), (message, subject, reply) => receive(o, 'events', message, subject, reply)),
  ]
  return () => ends.forEach((end) => end())
}

function receive(o: InboundOptions, op: 'hello' | 'heartbeat' | 'events', message: Envelope, subject: string, reply: Reply): void {
  const { body } = message
  if (body.op !== op || !speaksFor(subject, body.node_id)) return refuse(o, nodeIdOf(subject), 'wrong_sender', reply)
  const nodeId = body.node_id
  const node = o.engine.cluster.nodes.get(nodeId)
  if (node !== undefined && message.boot.counter < node.boot.counter) {
    reply(o.envelope({ op: 'state_reset', counter_above: node.boot.counter }))
    return
  }
  if (body.op === 'hello') {
    o.freshness.heard(nodeId, message.boot, message.sent_mono, o.clock.now())
    o.engine.hello(body, message.boot, message.seq, (stop) => reply(o.envelope({ op: 'welcome', settings: settingsFor(o, nodeId), stop })))
    return
  }
  if (node === undefined || message.boot.counter !== node.boot.counter || message.boot.random !== node.boot.random) {
    return refuse(o, nodeId, 'unknown_node', reply)
  }
  o.freshness.heard(nodeId, message.boot, message.sent_mono, o.clock.now())
  if (body.op === 'events') {
    const upTo = body.entries.at(-1)?.n ?? 0
    o.engine.nodeEvents(node, body.entries, () => reply(o.envelope({ op: 'events_ack', up_to: upTo })))
  } else if (message.seq > node.snapshotSeq) {
    o.engine.heartbeat(node, body, message.seq, (stop) => reply(o.envelope(leaseFor(o, node, stop))))
  }
}

/** `gpu.v1.node.<node_id>.<verb>`: the payload names the node that the subject names. */
function speaksFor(subject: string, nodeId: string): boolean {
  const at = DEFAULT_PREFIX.length + 6
  return subject.startsWith(nodeId, at) && subject.charCodeAt(at + nodeId.length) === DOT
}

const DOT = 46

function leaseFor(o: InboundOptions, node: LiveNode, stop: readonly AttemptRef[]): ControllerBody {
  return { op: 'lease', settings: settingsFor(o, node.id), stop }
}

function settingsFor(o: InboundOptions, nodeId: string): NodeSettings {
  const { policy, nodes } = o.engine.cluster
  return {
    heartbeat_ms: policy.heartbeatMs,
    run_lease_ms: policy.runLeaseMs,
    safety_reserve_mib: nodes.get(nodeId)?.reserveOverrideMib ?? policy.safetyReserveMib,
  }
}

function refuse(o: InboundOptions, nodeId: string | null, reason: string, reply: Reply): void {
  o.onRefused(nodeId, reason)
  reply(o.envelope({ op: 'refused', reason }))
}
