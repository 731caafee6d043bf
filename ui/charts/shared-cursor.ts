/** Charts of a page that share one crosshair: the chart under the pointer shows the values of all of them. */

export interface ReadoutLine {
  readonly name: string
  /** A CSS custom property, for example `--utilization`. */
  readonly colour: string
  /** The value, formatted. */
  readonly text: string
}

export interface Readout {
  /** Name of the chart. */
  readonly name: string
  readonly lines: readonly ReadoutLine[]
}

/** @returns the readout at an instant, in seconds since the epoch. */
type ReadoutAt = (at: number) => Readout

const groups = new Map<string, Set<ReadoutAt>>()

/** @returns leaves the group. */
export function shareCursor(key: string, own: ReadoutAt): () => void {
  const group = groups.get(key) ?? new Set()
  groups.set(key, group.add(own))
  return () => {
    group.delete(own)
    if (group.size === 0) groups.delete(key)
  }
}

/** The readouts of a group, in the order of its charts. */
export function sharedReadouts(key: string, at: number): readonly Readout[] {
  return [...(groups.get(key) ?? [])].map((readoutAt) => readoutAt(at))
}
