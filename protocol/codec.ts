import type { Envelope } from './messages.ts'

export function encode(envelope: Envelope): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(envelope))
}
export function decode(bytes: Uint8Array): { ok: true; envelope: Envelope } | { ok: false; why: string } {
  return { ok: true, envelope: JSON.parse(new TextDecoder().decode(bytes)) as Envelope }
}
