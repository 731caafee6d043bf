/** The chosen workload of a sweep. */
import type { SweptFieldBody } from '../../controller/api/simulations/scenario-schema.ts'

export const SOURCES = ['scenario', 'text', 'trace', 'live'] as const
export type SourceKind = (typeof SOURCES)[number]

export const SOURCE_NAMES: Readonly<Record<SourceKind, string>> = {
  scenario: 'Library scenario',
  text: 'Custom YAML',
  trace: 'Trace',
  live: 'Current cluster',
}

/** The part of POST /simulations/sweep that defines the scenario: exactly one member is set. */
export interface ScenarioBodyPart {
  readonly scenario?: string
  readonly scenario_text?: string
  readonly scenario_inline?: object
}

export interface Chosen {
  /** null: it cannot be run yet. */
  readonly part: ScenarioBodyPart | null
  /** Why it cannot be run. */
  readonly whyNot: string | null
  /** Fields that the scenario's own sweep varies in addition to the percentage. */
  readonly swept: readonly SweptFieldBody[]
}

export function notYet(whyNot: string): Chosen {
  return { part: null, whyNot, swept: [] }
}

export function chosen(part: ScenarioBodyPart, swept: readonly SweptFieldBody[] = []): Chosen {
  return { part, whyNot: null, swept }
}
