/**
 * Compares two sets of runs, seed by seed: which metrics differ, by how much, and whether that is more than
 * chance. Only differences are listed.
 */
import type { Percent } from '../../protocol/units.ts'
import { pairedDifference, type PairedDifference } from '../experiment/advisor/paired-difference.ts'
import { type Settings, settingsText } from '../experiment/sweep/sweep.ts'
import { figuresOf } from './compare.ts'
import { tableOf } from './plain-text.ts'
import type { RunResult } from '../results/result.ts'

/** A run, alone or of a sweep. */
export type ComparableRun = RunResult & {
  readonly overcommit_percent?: Percent
  readonly settings?: Settings
}

export interface Comparison {
  readonly pairs: number
  /** Pairs with the same digest and metrics. */
  readonly same: number
  /** Runs without a partner, as `80%, seed 3`. */
  readonly only_in_a: readonly string[]
  readonly only_in_b: readonly string[]
  /** One for each percentage and setting with a difference. */
  readonly groups: readonly ComparedGroup[]
}

export interface ComparedGroup {
  /** `80%`; empty for two single runs. */
  readonly title: string
  readonly pairs: number
  /** Pairs with different journals. */
  readonly digests: number
  readonly figures: readonly ComparedFigure[]
}

export interface ComparedFigure {
  readonly figure: string
  /** Mean over the pairs in which both have the metric; null: in no pair. */
  readonly a: number | null
  readonly b: number | null
  /** B minus A. */
  readonly difference: PairedDifference
  /** Number of pairs in which B is higher, lower. */
  readonly higher: number
  readonly lower: number
  /** Pairs in which only one has the metric. */
  readonly one_sided: number
}

interface Pair {
  readonly a: ComparableRun
  readonly b: ComparableRun
}

/**
 * Pairs have the same percentage, setting and seed. Two single runs are always a pair; if each side has one
 * setting only, the settings are compared, and need not be equal.
 */
export function compareRuns(a: readonly ComparableRun[], b: readonly ComparableRun[]): Comparison {
  const nameOf = namer(a, b)
  const inB = new Map(b.map((run) => [nameOf(run), run]))
  const namesInA = new Set(a.map(nameOf))
  const pairs = a.flatMap((run): Pair[] => {
    const partner = inB.get(nameOf(run))
    return partner === undefined ? [] : [{ a: run, b: partner }]
  })
  const different = pairs.filter((pair) => !isSame(pair))
  const titles = new Set(different.map((pair) => titleOf(pair.a)))
  return {
    pairs: pairs.length,
    same: pairs.length - different.length,
    only_in_a: a.map(nameOf).filter((name) => !inB.has(name)),
    only_in_b: b.map(nameOf).filter((name) => !namesInA.has(name)),
    groups: [...titles].map((title) =>
      groupOf(
        title,
        pairs.filter((pair) => titleOf(pair.a) === title),
      ),
    ),
  }
}

export function hasDifferences({ groups, only_in_a, only_in_b }: Comparison): boolean {
  return groups.length + only_in_a.length + only_in_b.length > 0
}

/** Digest and metrics; the rest of a result describes its origin. */
function isSame({ a, b }: Pair): boolean {
  return (
    a.digest === b.digest &&
    a.virtual_s === b.virtual_s &&
    JSON.stringify(a.metrics) === JSON.stringify(b.metrics)
  )
}

function namer(a: readonly ComparableRun[], b: readonly ComparableRun[]): (run: ComparableRun) => string {
  const areSingle = [...a, ...b].every(({ overcommit_percent }) => overcommit_percent === undefined)
  if (areSingle && a.length === 1 && b.length === 1) return () => ''
  const hasOneSetting = [a, b].every(
    (runs) => new Set(runs.map(({ settings }) => settingsText(settings ?? {}))).size === 1,
  )
  return (run) =>
    [...(hasOneSetting ? [percentText(run)] : [titleOf(run)]), `seed ${run.seed}`].filter(Boolean).join(', ')
}

function titleOf(run: ComparableRun): string {
  return [percentText(run), settingsText(run.settings ?? {})].filter(Boolean).join(', ')
}

function percentText({ overcommit_percent }: ComparableRun): string {
  return overcommit_percent === undefined ? '' : `${overcommit_percent}%`
}

function groupOf(title: string, pairs: readonly Pair[]): ComparedGroup {
  const figures = pairs.map(({ a, b }) => ({ a: allFigures(a), b: allFigures(b) }))
  const names = new Set(figures.flatMap(({ a, b }) => [...a.keys(), ...b.keys()]))
  const compared = [...names].map((name) =>
    comparedFigure(
      name,
      figures.map(({ a, b }) => [a.get(name), b.get(name)]),
    ),
  )
  return {
    title,
    pairs: pairs.length,
    digests: pairs.filter(({ a, b }) => a.digest !== b.digest).length,
    figures: compared.filter(({ higher, lower, one_sided }) => higher + lower + one_sided > 0),
  }
}

function allFigures({ virtual_s, metrics }: ComparableRun): Map<string, number | null> {
  return figuresOf({ virtual_s, ...metrics })
}

function comparedFigure(
  figure: string,
  values: ReadonlyArray<readonly [number | null | undefined, number | null | undefined]>,
): ComparedFigure {
  const known = values.filter((pair): pair is readonly [number, number] =>
    pair.every((value) => typeof value === 'number'),
  )
  const differences = known.map(([a, b]) => b - a)
  const mean = (side: 0 | 1): number | null =>
    known.length === 0 ? null : known.reduce((sum, pair) => sum + pair[side], 0) / known.length
  return {
    figure,
    a: mean(0),
    b: mean(1),
    difference: pairedDifference(differences),
    higher: differences.filter((each) => each > 0).length,
    lower: differences.filter((each) => each < 0).length,
    one_sided: values.filter(([a, b]) => (typeof a === 'number') !== (typeof b === 'number')).length,
  }
}

// ── for people ───────────────────────────────────────────────────────────────

const MOST_NAMES = 10

export function formatComparison(comparison: Comparison): string {
  const { pairs, same, groups } = comparison
  const lines = [
    `${pairs} ${pairs === 1 ? 'pair' : 'pairs'} of runs: ${same} the same, ${pairs - same} different\n`,
  ]
  lines.push(onlyIn('A', comparison.only_in_a), onlyIn('B', comparison.only_in_b))
  for (const group of groups) lines.push(`\n${formatGroup(group)}`)
  return lines.join('')
}

function onlyIn(side: string, names: readonly string[]): string {
  if (names.length === 0) return ''
  const more = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : ''
  return `only in ${side}: ${names.slice(0, MOST_NAMES).join('; ')}${more}\n`
}

function formatGroup({ title, pairs, digests, figures }: ComparedGroup): string {
  const head = title === '' ? '' : `overcommit ${title}\n`
  if (figures.length === 0)
    return `${head}every figure is the same; the journals of ${digests} of ${pairs} differ\n`
  const rows = figures.map(({ figure, a, b, difference, higher, lower, one_sided }) => [
    figure,
    shown(a),
    shown(b),
    shownDifference(difference),
    pairs === 1 ? '' : difference.told_apart ? 'told apart' : 'not told apart',
    pairs === 1
      ? ''
      : [
          `higher in ${higher}`,
          `lower in ${lower}`,
          ...(one_sided > 0 ? [`only one has it in ${one_sided}`] : []),
        ].join(', '),
  ])
  return `${head}${tableOf([['', 'A', 'B', 'B − A', '', ''], ...rows])}`
}

function shown(value: number | null): string {
  return value === null ? '–' : value.toFixed(3)
}

function shownDifference({ pairs, mean, half_width }: PairedDifference): string {
  if (pairs === 0) return '–'
  const width = half_width === null ? '' : ` ± ${half_width.toFixed(3)}`
  return `${mean < 0 ? '−' : '+'}${Math.abs(mean).toFixed(3)}${width}`
}
