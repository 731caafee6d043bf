import { uuidV5 } from './uuid.ts'

/** The namespace of node ids (docs/protocol.md, "Subjects"). */
const NODE_NAMESPACE = 'b5de09d5-af0a-4767-aef9-4a0f8a6d0ac4'

/**
 * Returns a node's id when none is configured: UUID version 5 of its name, so that a server keeps its
 * identity without a file.
 */
export function nodeIdFromName(name: string): string {
  return uuidV5(NODE_NAMESPACE, name)
}
