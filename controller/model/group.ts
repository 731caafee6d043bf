/**
 * A named set of nodes. A node in a group runs only tasks that target one of its groups (specification 1,
 * "Groups").
 */
export interface Group {
  /** The name chosen by users. */
  readonly id: string
  readonly description: string
  /** Node ids, in code-unit order. They may name nodes that have not registered yet. */
  readonly nodeIds: readonly string[]
}

/**
 * Returns true if NFKC, which maps letters such as U+212B or the ligature ﬁ to their usual forms, leaves the
 * name unchanged: it is not a look-alike of another. Groups created before this rule keep their names.
 */
export function isPlainName(id: string): boolean {
  return id.normalize('NFKC') === id
}

export const GROUP_ID_MAX_LENGTH = 200
/** Allowed characters of a group name. Use with the flag `u`. */
export const GROUP_ID_PATTERN = '^[\\p{L}\\p{N}](?:[\\p{L}\\p{N} ._-]*[\\p{L}\\p{N}._-])?$'
