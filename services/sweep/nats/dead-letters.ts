/** Moves an invalid message from the work queue to a bounded stream, where an operator can inspect it. */
import type { Delivery, JetStream } from './jetstream.ts'
import { DEAD_SUBJECT } from './sweep-subjects.ts'

/** The beginning of the message is enough to identify it. */
const KEPT_BYTES = 4 * 1024

/** Resolves when the broker has stored the message and removed it from the queue. */
export async function moveToDeadLetters(
  stream: JetStream,
  { subject, data, deliveries, ack }: Delivery,
  why: string,
): Promise<void> {
  const head = Buffer.from(data.subarray(0, KEPT_BYTES)).toString('base64')
  await stream.publish(
    DEAD_SUBJECT,
    JSON.stringify({ why, subject, deliveries, bytes: data.length, head_base64: head }),
  )
  await ack()
}
