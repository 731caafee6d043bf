/** The entries of the palette, and their order for a text. Pure. */

export type EntryKind = 'Action' | 'Page' | 'Task' | 'Node' | 'Group' | 'Owner' | 'Setting'

export interface Entry {
  readonly kind: EntryKind
  readonly name: string
  /** Also matches, for example the id. */
  readonly also?: string
  /** Shown next to the name. */
  readonly detail?: string
  /** A page of this cluster, or what to do. */
  readonly go: string | (() => void)
}

export const MAX_SHOWN = 40

/**
 * Order:
 * 1. the name or the id is the text,
 * 2. the name begins with it,
 * 3. a word of the name begins with it,
 * 4. the rest, which has all its words;
 * then in the order of the entries. Without a text only pages and actions are shown.
 */
export function ranked(entries: readonly Entry[], text: string): readonly Entry[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '')
    return entries.filter(({ kind }) => kind === 'Action' || kind === 'Page').slice(0, MAX_SHOWN)
  return entries
    .map((entry, at) => ({ entry, at, rank: rankOf(entry, wanted) }))
    .filter(({ rank }) => rank !== null)
    .sort((a, b) => (a.rank ?? 0) - (b.rank ?? 0) || a.at - b.at)
    .slice(0, MAX_SHOWN)
    .map(({ entry }) => entry)
}

function rankOf({ name, also }: Entry, wanted: string): number | null {
  const [own, other] = [name.toLowerCase(), (also ?? '').toLowerCase()]
  if (own === wanted || other === wanted) return 1
  if (own.startsWith(wanted)) return 2
  if (own.split(/[^a-z0-9]+/).some((word) => word.startsWith(wanted))) return 3
  const all = `${own} ${other}`
  return wanted.split(/\s+/).every((word) => all.includes(word)) ? 4 : null
}
