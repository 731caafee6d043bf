/** What the extender answers when the scheduler asks which nodes a pod may run on. */
export interface FilterAnswer {
  readonly nodeNames: readonly string[]
  /** Why not, for each other node. */
  readonly failed: Readonly<Record<string, string>>
}

export function refusal(names: readonly string[], why: string): FilterAnswer {
  return { nodeNames: [], failed: Object.fromEntries(names.map((name) => [name, why])) }
}
