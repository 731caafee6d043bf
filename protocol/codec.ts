/**
 * Encodes and decodes messages: JSON in UTF-8. Input is hostile until it has been checked against the schema
 * of the envelope.
 */
import { checkOf } from './check.ts'
import { ENVELOPE } from './envelope.ts'
import type { Envelope } from './envelope.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

/** Why bytes are not a message, in the order of the checks. */
export type MalformedReason = 'too_large' | 'not_json' | 'wrong_version' | 'bad_field'

/** `why` names the field, then what it must be (`body.attempt: must be …`). */
export type Decoded =
  | { readonly ok: true; readonly envelope: Envelope }
  | { readonly ok: false; readonly reason: MalformedReason; readonly why: string }

/** A message that every receiver would refuse: the sender exceeded a limit of the protocol. */
export class MessageTooLargeError extends Error {
  override readonly name = 'MessageTooLargeError'
  constructor(op: string, bytes: number) {
    super(`message '${op}' has ${bytes} bytes; the limit is ${MAX_MESSAGE_BYTES}`)
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const check = checkOf(ENVELOPE)

/**
 * Encodes an envelope. Does not check the content: the receiver detects a sender that breaks the schema.
 * Throws MessageTooLargeError.
 */
export function encode(envelope: Envelope): Uint8Array {
  const bytes = encoder.encode(JSON.stringify(envelope))
  if (bytes.byteLength > MAX_MESSAGE_BYTES) throw new MessageTooLargeError(envelope.body.op, bytes.byteLength)
  return bytes
}

/**
 * Decodes an envelope; never throws. The result holds the fields of the schema and no others (protocol
 * principle 3: unknown fields are ignored).
 */
export function decode(bytes: Uint8Array): Decoded {
  if (bytes.byteLength > MAX_MESSAGE_BYTES) {
    return {
      ok: false,
      reason: 'too_large',
      why: `message: ${bytes.byteLength} bytes, the limit is ${MAX_MESSAGE_BYTES}`,
    }
  }
  let value: unknown
  try {
    value = JSON.parse(decoder.decode(bytes))
  } catch {
    return { ok: false, reason: 'not_json', why: 'message: is not JSON in UTF-8' }
  }
  const fault = check(value)
  if (fault !== null) {
    const why = fault.startsWith('.') ? fault.slice(1) : `message${fault}`
    return { ok: false, reason: why.startsWith('v: ') ? 'wrong_version' : 'bad_field', why }
  }
  return { ok: true, envelope: value as Envelope }
}
