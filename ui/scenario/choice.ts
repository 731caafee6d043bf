/** What is to be swept, as it was chosen. */

export const SOURCES = ['scenario', 'text', 'trace', 'live'] as const
export type SourceKind = (typeof SOURCES)[number]

export const SOURCE_NAMES: Readonly<Record<SourceKind, string>> = {
  scenario: 'A scenario that is here',
  text: 'Own text',
  trace: 'A trace',
  live: 'What runs here',
}

/** Of POST /simulations/sweep: exactly one. */
export interface ScenarioBodyPart {
  readonly scenario?: string
  readonly scenario_text?: string
  readonly scenario_inline?: object
}

export interface Chosen {
  /** null: it cannot be run yet. */
  readonly part: ScenarioBodyPart | null
  /** Why not. */
  readonly whyNot: string | null
}

export function notYet(whyNot: string): Chosen {
  return { part: null, whyNot }
}

export function chosen(part: ScenarioBodyPart): Chosen {
  return { part, whyNot: null }
}
