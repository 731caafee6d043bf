import { createHash } from 'node:crypto'

/** The namespace of node ids (docs/protocol.md, "Subjects"). */
const NODE_NAMESPACE = 'b5de09d5-af0a-4767-aef9-4a0f8a6d0ac4'

/** A node's id when none is configured: UUID version 5 of its name, so that a server keeps its identity without keeping a file. */
export function nodeIdFromName(name: string): string {
  const hash = createHash('sha1')
  hash.update(Buffer.from(NODE_NAMESPACE.replaceAll('-', ''), 'hex'))
  hash.update(name, 'utf8')
  const bytes = hash.digest().subarray(0, 16)
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x50
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
