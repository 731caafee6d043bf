/** The differences between two results, metric by metric. */
import type { RunResult } from '../results/result.ts'

type Compared = Partial<Pick<RunResult, 'virtual_s' | 'metrics'>>

/**
 * One line per metric that differs: `starvation_percent.swap: 1.2 → 1.3`. A metric that only one of them has
 * is `–` in the other.
 */
export function differencesOf(before: Compared | null, after: Compared | null): string[] {
  const old = figuresOf({ virtual_s: before?.virtual_s, ...before?.metrics })
  const now = figuresOf({ virtual_s: after?.virtual_s, ...after?.metrics })
  const names = new Set([...old.keys(), ...now.keys()])
  return [...names]
    .filter((name) => old.get(name) !== now.get(name))
    .map((name) => `${name}: ${shown(old.get(name))} → ${shown(now.get(name))}`)
}

/** Every number, by its dotted path, without nulls. */
export function figuresOf(
  value: object,
  prefix = '',
  figures = new Map<string, number | null>(),
): Map<string, number | null> {
  for (const [key, member] of Object.entries(value) as [string, unknown][]) {
    if (typeof member === 'number') figures.set(`${prefix}${key}`, member)
    else if (typeof member === 'object' && member !== null) figuresOf(member, `${prefix}${key}.`, figures)
  }
  return figures
}

function shown(figure: number | null | undefined): string {
  return figure === null || figure === undefined ? '–' : String(figure)
}
