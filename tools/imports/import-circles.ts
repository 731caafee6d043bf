/** Circles of files and of folders in the graph of imports. */
import { dirname } from 'node:path/posix'
import { byCodeUnits, firstDifference } from '../../controller/structures/order.ts'

export interface Import {
  readonly from: string
  readonly to: string
  readonly isTypeOnly: boolean
}

export interface ImportCircles {
  /** Files that import each other, imports of types included. */
  readonly files: readonly (readonly string[])[]
  /** Folders that import values from each other. */
  readonly folders: readonly (readonly string[])[]
}

export function importCircles(imports: readonly Import[]): ImportCircles {
  const values = imports.filter(({ isTypeOnly }) => !isTypeOnly)
  const folders = values.map(({ from, to }) => [dirname(from), dirname(to)] as const)
  return { files: circlesOf(imports.map(({ from, to }) => [from, to])), folders: circlesOf(folders) }
}

type Arrow = readonly [from: string, to: string]

/**
 * 1. More members first.
 * 2. Path of the first member, so that the order is total.
 */
const byLength = firstDifference<readonly string[]>(
  (a, b) => b.length - a.length,
  (a, b) => byCodeUnits(a[0] ?? '', b[0] ?? ''),
)

/**
 * Returns the strongly connected components with more than one member, in the order of `byLength` (Tarjan
 * 1972).
 */
export function circlesOf(arrows: readonly Arrow[]): readonly (readonly string[])[] {
  const targets = new Map<string, Set<string>>()
  for (const [from, to] of arrows) {
    if (!targets.has(from)) targets.set(from, new Set())
    if (from !== to) targets.get(from)?.add(to)
  }
  const index = new Map<string, number>()
  const open: string[] = []
  const isOpen = new Set<string>()
  const circles: string[][] = []
  const visit = (at: string): number => {
    const own = index.size
    index.set(at, own)
    open.push(at)
    isOpen.add(at)
    let lowest = own
    for (const to of targets.get(at) ?? []) {
      if (!index.has(to)) lowest = Math.min(lowest, visit(to))
      else if (isOpen.has(to)) lowest = Math.min(lowest, index.get(to) ?? lowest)
    }
    if (lowest === own) {
      const members = open.splice(open.indexOf(at))
      for (const member of members) isOpen.delete(member)
      if (members.length > 1) circles.push(members.toSorted(byCodeUnits))
    }
    return lowest
  }
  for (const at of targets.keys()) if (!index.has(at)) visit(at)
  return circles.toSorted(byLength)
}
