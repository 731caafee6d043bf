/** What is to be swept, as it was chosen. */
import type { SweptFieldBody } from '../../controller/api/schema/scenario.ts'

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
  /** What the scenario's own sweep varies beside the percentage. */
  readonly swept: readonly SweptFieldBody[]
}

export function notYet(whyNot: string): Chosen {
  return { part: null, whyNot, swept: [] }
}

export function chosen(part: ScenarioBodyPart, swept: readonly SweptFieldBody[] = []): Chosen {
  return { part, whyNot: null, swept }
}
