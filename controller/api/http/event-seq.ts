/**
 * Answers carry the number of the last durable event. A request that names one is never answered from an
 * older state, so that a client reads its own writes at whichever controller it asks.
 */
import { ApiProblem } from './errors.ts'

export const EVENT_SEQ = 'headroom-event-seq'
export const MIN_EVENT_SEQ = 'headroom-min-event-seq'

const WHOLE_NUMBER = /^\d{1,15}$/

/**
 * @param wanted value of the header field
 * @param seq of the last durable event
 * @throws ApiProblem if the state of this controller is older
 */
export function requireReached(wanted: string | readonly string[] | undefined, seq: number): void {
  if (wanted === undefined) return
  if (typeof wanted !== 'string' || !WHOLE_NUMBER.test(wanted))
    throw new ApiProblem(
      'invalid_request',
      'Headroom-Min-Event-Seq must be the number of an event. Send the value of a Headroom-Event-Seq header.',
    )
  if (Number(wanted) <= seq) return
  throw new ApiProblem(
    'state_behind',
    `This controller has reached event ${seq}, but the request requires the state of event ${wanted}. ` +
      'Send the request to another controller, or omit Headroom-Min-Event-Seq if the store was restored.',
    { headers: { 'retry-after': '1' } },
  )
}
