/** Reads uploaded files of a task that starts here from the controller (`read_blob`). */
import { MAX_FILE_BYTES } from '../../protocol/limits.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import type { ReadBlobPart } from './device.ts'
import type { Envelopes } from './envelopes.ts'

const ANSWER_WITHIN_MS: DurationMs = 5_000

/** The hash of the whole is checked by the reader: an answer is only as good as its bytes. */
export function blobReads(
  nodeId: string,
  bus: Bus,
  envelopes: Envelopes,
): (taskId: string, attempt: number) => ReadBlobPart {
  const subject = nodeSubject(nodeId, 'telemetry')
  return (taskId, attempt) => (sha256, offset, done) => {
    const asked = envelopes.seal({
      op: 'read_blob',
      node_id: nodeId,
      task_id: taskId,
      attempt,
      sha256,
      offset,
      max_bytes: MAX_FILE_BYTES,
    })
    bus.request(subject, asked, ANSWER_WITHIN_MS, (outcome) => {
      if (!outcome.answered) return done(null)
      const { body } = outcome.answer
      if (body.op === 'refused') return done({ refused: body.reason })
      if (body.op !== 'blob' || body.sha256 !== sha256 || body.offset !== offset) return done(null)
      done({ data: body.data, bytes: body.bytes })
    })
  }
}
