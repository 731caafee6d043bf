import { createHash } from 'node:crypto'

const BYTES = Buffer.alloc(16)
const TEXT = Buffer.alloc(36)
const DIGITS = Buffer.from('0123456789abcdef', 'latin1')
const HYPHEN = 0x2d

/** Returns a version 4 UUID (RFC 9562) from a stream of random numbers in [0, 1). */
export function uuidV4(random: () => number): string {
  for (let i = 0; i < BYTES.length; i += 2) BYTES.writeUInt16BE(Math.floor(random() * 65536), i)
  return textOf(BYTES, 4)
}

/** Returns the UUID version 5 of a name in a namespace (RFC 9562): the same name gives the same UUID. */
export function uuidV5(namespace: string, name: string): string {
  const hash = createHash('sha1')
  hash.update(Buffer.from(namespace.replaceAll('-', ''), 'hex'))
  hash.update(name, 'utf8')
  return textOf(hash.digest(), 5)
}

/**
 * Sets version and variant in the first 16 bytes. The text comes from a buffer, in one piece: a million ids
 * concatenated from parts, which V8 keeps as trees, need 400 MB more.
 */
function textOf(bytes: Buffer, version: number): string {
  bytes[6] = ((bytes[6] as number) & 0x0f) | (version << 4)
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  let at = 0
  for (let i = 0; i < 16; i++) {
    if (i === 4 || i === 6 || i === 8 || i === 10) TEXT[at++] = HYPHEN
    const byte = bytes[i] as number
    TEXT[at++] = DIGITS[byte >>> 4] as number
    TEXT[at++] = DIGITS[byte & 0x0f] as number
  }
  return TEXT.toString('latin1')
}
