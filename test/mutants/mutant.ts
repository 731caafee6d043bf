/** A rule taken out of the sources, to see that something notices. */

/** Text that stands exactly once in the file, and what stands there in its place. */
export interface Edit {
  /** From the root of the project. */
  readonly file: string
  readonly find: string
  readonly put: string
}

export interface Mutant {
  readonly name: string
  /** R1 to R12 (docs/protocol.md), or the section of the semantics: swap, return, admission, queue. */
  readonly rule: string
  /** What the mutated product does. */
  readonly says: string
  readonly edits: readonly Edit[]
  /** Kinds of faults or features without which no seed can notice: seeds that draw one of them are tried first. */
  readonly likes?: readonly string[]
  /** Where no seed notices: a scenario in test/mutants/scenarios, or a file of tests, that does. */
  readonly directed?: { readonly scenario: string } | { readonly test: string }
}

export function edit(file: string, find: string, put: string): Edit {
  return { file, find, put }
}
