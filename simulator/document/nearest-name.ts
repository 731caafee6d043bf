/** Finds the name that was probably meant. */

const MAX_NAME_LENGTH = 64

/**
 * The nearest of `names` by edits (insert, delete, replace, swap neighbours), or null when none is near: at
 * most a third of the longer name, and at least one. A name that contains what was written, or is contained
 * in it, is near as well. Ties: the first of the list.
 */
export function nearestName(written: string, names: readonly string[]): string | null {
  if (written.length > MAX_NAME_LENGTH) return null
  const wanted = folded(written)
  let nearest: string | null = null
  let least = Infinity
  for (const name of names) {
    const candidate = folded(name)
    const edits = editDistance(wanted, candidate)
    const isNear = edits * 3 <= Math.max(3, wanted.length, candidate.length)
    if ((isNear || contains(wanted, candidate)) && edits < least) [nearest, least] = [name, edits]
  }
  return nearest
}

/** `vramMib`, `vram-mib` and `VRAM_MIB` are all meant to be `vram_mib`. */
function folded(name: string): string {
  return name.replaceAll(/[-_ ]/g, '').toLowerCase()
}

function contains(a: string, b: string): boolean {
  const shorter = a.length < b.length ? a : b
  return shorter.length >= 4 && (a.includes(b) || b.includes(a))
}

/**
 * Optimal string alignment: Damerau-Levenshtein without editing a swapped pair again. O(a × b), both short.
 */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      let edits = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1)
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (isSwapped) edits = Math.min(edits, beforeLast[j - 2]! + 1)
      row.push(edits)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}
