/**
 * Gives a node the uploaded files of tasks that are placed or prepared on it, and no others (protocol,
 * `read_blob`). No input of the engine: nothing is decided, and the bytes are in no recording.
 */
import type { ControllerBody, Envelope } from '../../protocol/envelope.ts'
import type { ReadBlob } from '../../protocol/file-messages.ts'
import { everyNode, nodeIdOf } from '../../protocol/subjects.ts'
import type { Engine } from '../engine/engine.ts'
import { bootOrder } from '../engine/inputs/nodes/node-registry.ts'
import { preparationOn } from '../model/preparation.ts'
import type { Blobs } from '../ports/blobs.ts'
import type { Bus, Reply } from '../ports/bus.ts'
import type { RefusedReason } from './message-counts.ts'

export interface BlobReadsOptions {
  readonly engine: Engine
  readonly bus: Bus
  readonly blobs: Blobs
  readonly envelope: (body: ControllerBody) => Envelope
  /** Called for a node that asks for what is not its own; it was refused. */
  readonly onRefused: (nodeId: string | null, reason: RefusedReason) => void
}

/** Reads of one node that are under way; further ones are refused. */
const MAX_READS_PER_NODE = 16

/** @returns a function that stops listening */
export function listenToBlobReads(o: BlobReadsOptions): () => void {
  const underWay = new Map<string, number>()
  return o.bus.subscribe(everyNode('telemetry'), (message, subject, reply) => {
    const { body } = message
    const nodeId = nodeIdOf(subject)
    if (body.op !== 'read_blob' || nodeId === null || body.node_id !== nodeId)
      return refuse(o, nodeId, 'wrong_sender', reply)
    // A node that is ahead gets no answer at all (inbound.ts).
    if (o.engine.judge(message) !== 'known') return
    const node = o.engine.cluster.nodes.get(nodeId)
    if (node === undefined || bootOrder(node, message.boot) !== 'known')
      return refuse(o, nodeId, 'unknown_node', reply)
    const reads = underWay.get(nodeId) ?? 0
    if (reads >= MAX_READS_PER_NODE) return reply(o.envelope({ op: 'refused', reason: 'too_many_reads' }))
    underWay.set(nodeId, reads + 1)
    const end = (): void => {
      const left = (underWay.get(nodeId) ?? 1) - 1
      if (left === 0) underWay.delete(nodeId)
      else underWay.set(nodeId, left)
    }
    // A file that cannot be read is asked for again.
    answer(o, body, reply).then(end, end)
  })
}

async function answer(o: BlobReadsOptions, asked: ReadBlob, reply: Reply): Promise<void> {
  const { node_id: nodeId, task_id, attempt, sha256, offset } = asked
  const task = o.engine.cluster.tasks.get(task_id)
  const { placement = null } = task ?? {}
  const manifest = task?.spec.workdir ?? null
  const isPlacedThere = placement?.node.id === nodeId && placement.attempt === attempt
  const preparation = task === undefined ? null : preparationOn(task, nodeId)
  const isItsOwn = isPlacedThere || preparation?.attempt === attempt
  if (task === undefined || manifest === null || !isItsOwn) return refuse(o, nodeId, 'foreign_files', reply)
  const { owner } = task.spec
  if (!(await o.blobs.belongsTo(owner, manifest, sha256))) {
    if (sha256 !== manifest) return refuse(o, nodeId, 'foreign_files', reply)
    return reply(o.envelope({ op: 'refused', reason: 'files_missing' }))
  }
  const piece = await o.blobs.read(owner, sha256, offset, asked.max_bytes)
  if (piece === null) return reply(o.envelope({ op: 'refused', reason: 'files_missing' }))
  const { base64: data, bytes } = piece
  reply(o.envelope({ op: 'blob', task_id, attempt, sha256, offset, data, bytes }))
}

function refuse(o: BlobReadsOptions, nodeId: string | null, reason: RefusedReason, reply: Reply): void {
  o.onRefused(nodeId, reason)
  reply(o.envelope({ op: 'refused', reason }))
}
