/** Names of nodes in a scenario: live names may be invalid there, or not unique. */
import type { SnapshotNode } from '../../controller/ports/twin.ts'

const MAX_LENGTH = 63

/** The unique names of the nodes, by id: their own names as far as these are valid. */
export function nodeNames(nodes: readonly Pick<SnapshotNode, 'id' | 'name'>[]): ReadonlyMap<string, string> {
  const taken = new Set<string>()
  return new Map(
    nodes.map(({ id, name }) => {
      const plain =
        name
          .replaceAll(/[^A-Za-z0-9_-]/g, '-')
          .replace(/^[_-]+/, '')
          .slice(0, MAX_LENGTH) || 'node'
      let own = plain
      for (let n = 2; taken.has(own); n++) own = `${plain.slice(0, MAX_LENGTH - String(n).length - 1)}-${n}`
      taken.add(own)
      return [id, own] as const
    }),
  )
}
