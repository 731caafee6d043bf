import { createHash } from 'node:crypto'

const BYTES = Buffer.alloc(16)
const TEXT = Buffer.alloc(36)

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
  const hex = bytes.toString('hex', 0, 16)
  TEXT.write(
    `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`,
    'latin1',
  )
  return TEXT.toString('latin1')
}
