/** Reports of servers about images and files that tasks need before their start. */
import { count, list, NO_NUL, oneOf, optional, orNull, record, text, type Value } from './fields.ts'
import { MAX_DETAIL_LENGTH, MAX_PREPARATIONS_PER_NODE, MAX_REPORTED_IMAGES } from './limits.ts'
import { attempt, image, StartRefused } from './message-fields.ts'

/** Images and files of one task, as far as the node has them. */
const PreparationReport = record({
  ...attempt,
  state: oneOf(
    ['preparing', 'prepared', 'failed'],
    'failed: start_refused says why. The node forgets it once the controller names it in stop',
  ),
  bytes_done: count('Bytes of the image and of the uploaded folder that have arrived'),
  bytes_total: orNull(count('Bytes known to be needed. Null: not known')),
  start_refused: optional(record(StartRefused.properties, 'Of a failed one')),
  detail: optional(text(0, MAX_DETAIL_LENGTH, 'Of a failed one', NO_NUL)),
})
export type PreparationReport = Value<typeof PreparationReport>

/** In every snapshot of a server. */
export const PREPARATIONS = {
  preparing: optional(
    list(
      PreparationReport,
      0,
      MAX_PREPARATIONS_PER_NODE,
      'Tasks that it prepares for a start (`prepare`). Absent: none',
    ),
  ),
  images: optional(
    list(
      image('As the controller wrote it'),
      0,
      MAX_REPORTED_IMAGES,
      'Images of waiting tasks that the node has. Absent: none, or not known',
    ),
  ),
}

/** In the answer to a snapshot. */
export const WAITING_IMAGES = optional(
  list(
    image('As in the task'),
    0,
    MAX_REPORTED_IMAGES,
    'Images of waiting tasks: the next heartbeats name those that the node has. Sent only to servers with ' +
      'the feature prepare. Absent: none',
  ),
)
