/**
 * Messages to bytes and back: JSON in UTF-8. What comes in is hostile until it has been held against the
 * tables in `schema.ts`.
 */
import type { Envelope } from './messages.ts'
import { ENVELOPE, MAX_MESSAGE_BYTES } from './schema.ts'
import { checkOf } from './schema-check.ts'

/** What is wrong with bytes that are no message, in the order in which it is looked at. */
export type MalformedReason = 'too_large' | 'not_json' | 'wrong_version' | 'bad_field'

/** Why bytes are no message: the field in question, then what belongs there (`body.attempt: must be …`). */
export type Decoded =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly reason: MalformedReason; readonly why: string }

/** A message that nobody would take: its sender put more into it than the protocol allows. */
export class MessageTooLargeError extends Error {
  override readonly name = 'MessageTooLargeError'
  constructor(op: string, bytes: number) {
    super(`a message '${op}' of ${bytes} bytes: at most ${MAX_MESSAGE_BYTES} are allowed`)
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const check = checkOf(ENVELOPE)

/**
 * Throws MessageTooLargeError. Content is not looked at: a sender that breaks the schema is found out by the
 * receiver.
 */
export function encode(envelope: Envelope): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(envelope))
  if (bytes.byteLength > MAX_MESSAGE_BYTES) throw new MessageTooLargeError(envelope.body.op, bytes.byteLength)
  return bytes
}

/**
 * Never throws. The envelope holds the fields of the schema and no others (protocol principle 3: an unknown
 * field is ignored).
 */
export function decode(bytes: Uint8Array): Decoded {
  if (bytes.byteLength > MAX_MESSAGE_BYTES) {
    return {
      ok: false,
      reason: 'too_large',
      why: `message: ${bytes.byteLength} bytes, at most ${MAX_MESSAGE_BYTES}`,
    }
  }
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    return { ok: false, reason: 'not_json', why: 'message: is no JSON in UTF-8' }
  }
  const fault = check(value)
  if (fault !== null) {
    const why = fault.startsWith('.') ? fault.slice(1) : `message${fault}`
    return { ok: false, reason: why.startsWith('v: ') ? 'wrong_version' : 'bad_field', why }
  }
  return { ok: true, envelope: value as Envelope }
}
