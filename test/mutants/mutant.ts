/** A change that removes a rule from the sources, to check that a test detects it. */
import { locate } from './locate.ts'

/** One fragment of code and its replacement. */
export interface Edit {
  /** From the root of the project. */
  readonly file: string
  /** The declaration that contains the fragment: a function, a constant, or `Class.member`. */
  readonly inside: string
  /** Compared token by token; the declaration contains it exactly once. */
  readonly find: string
  readonly put: string
}

export interface Mutant {
  readonly name: string
  /** R1 to R12 (docs/protocol.md), or the section of the semantics: swap, return, admission, queue. */
  readonly rule: string
  /** The behaviour of the mutated product. */
  readonly says: string
  readonly edits: readonly Edit[]
  /**
   * Kinds of faults or features without which no seed can detect it: seeds that draw one of them are tried
   * first.
   */
  readonly likes?: readonly string[]
  /** If no seed detects it: a scenario in test/mutants/scenarios, or a test file, that does. */
  readonly directed?: { readonly scenario: string } | { readonly test: string }
}

export function edit(file: string, inside: string, find: string, put: string): Edit {
  return { file, inside, find, put }
}

/**
 * Returns the source with the replacement in place. Throws RangeError when the fragment is not in the
 * declaration exactly once.
 */
export function mutated(source: string, { inside, find, put }: Edit): string {
  const { start, end } = locate(source, inside, find)
  return source.slice(0, start) + put + source.slice(end)
}
