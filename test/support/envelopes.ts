/** Messages of a sender that numbers them. */
import type { Body, Envelope } from '../../protocol/envelope.ts'
import { PROTOCOL_VERSION } from '../../protocol/limits.ts'

let lastSeq = 0

export function envelopeOf(body: Body, id?: string): Envelope {
  lastSeq += 1
  return {
    v: PROTOCOL_VERSION,
    id: id ?? `m${lastSeq}`,
    sent_mono: 0,
    boot: { counter: 1, random: 'test' },
    seq: lastSeq,
    epoch: 0,
    body,
  }
}
