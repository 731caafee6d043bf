import type { DocNode } from './doc-node.ts'
import type { Path, ProblemList } from './problem.ts'

/** Reports a problem at a position whose value was valid by itself. */
export type Refuse = (keys: readonly (string | number)[], detail: string) => void

/** Finds the position in the document; an absent key is reported at its map. */
export function refuseIn(root: DocNode, problems: ProblemList): Refuse {
  return (keys, detail) => {
    let node = root
    let path: Path | null = null
    let isThere = true
    for (const key of keys) {
      path = { parent: path, key }
      const child: DocNode | undefined = isThere ? childOf(node, key) : undefined
      isThere = child !== undefined
      node = child ?? node
    }
    problems.add(node.offset, path, detail)
  }
}

function childOf(node: DocNode, key: string | number): DocNode | undefined {
  switch (node.kind) {
    case 'scalar':
    case 'broken':
      return undefined
    case 'list':
      return typeof key === 'number' ? node.items[key] : undefined
    case 'map':
      return node.entries.get(String(key))?.value
  }
}
