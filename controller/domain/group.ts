/** A named set of nodes. A node in a group runs only tasks that target one of its groups (specification 1, "Groups"). */
export interface Group {
  /** The name people chose. */
  readonly id: string
  readonly description: string
  /** Node ids, in code-unit order. They may name nodes that have not registered yet. */
  readonly nodeIds: readonly string[]
}
