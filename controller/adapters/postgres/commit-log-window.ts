/** The part of the commit log that is kept: 10 minutes, and at most 1 GiB. */

const MAX_AGE_MS = 600_000
const MAX_BYTES = 1_073_741_824
/** Entries of this time are removed together. */
const PART_MS = 1_000

/** Entries up to `lastSeq`, and after those of the part before. */
export interface LogPart {
  readonly lastSeq: number
  /** Time of the last entry, by the writer's clock. */
  readonly at: number
  readonly bytes: number
}

export interface CommitLogWindow {
  /** Call once per commit: the first number that is kept from now on; null: nothing is removed. */
  advance(): number | null
  /** Notes a committed entry. */
  add(seq: number, at: number, bytes: number): void
}

/** Removes one part per commit, so that no commit removes much. @param parts those that exist, in order */
export function createCommitLogWindow(
  parts: readonly LogPart[],
  { maxAgeMs = MAX_AGE_MS, maxBytes = MAX_BYTES } = {},
): CommitLogWindow {
  const kept = [...parts]
  let newestAt = parts.at(-1)?.at ?? 0
  let bytesKept = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  return {
    advance() {
      const [oldest] = kept
      // The newest part always stays.
      if (oldest === undefined || kept.length === 1) return null
      if (newestAt - oldest.at <= maxAgeMs && bytesKept <= maxBytes) return null
      kept.shift()
      bytesKept -= oldest.bytes
      return oldest.lastSeq + 1
    },
    add(seq, at, bytes) {
      newestAt = Math.max(newestAt, at)
      bytesKept += bytes
      const last = kept.at(-1)
      if (last === undefined || at - last.at >= PART_MS || at < last.at || kept.length <= parts.length)
        kept.push({ lastSeq: seq, at, bytes })
      else kept[kept.length - 1] = { lastSeq: seq, at: last.at, bytes: last.bytes + bytes }
    },
  }
}
