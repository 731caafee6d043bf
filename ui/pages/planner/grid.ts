/** Parses percentages and seeds, for example `0..100:25, 150`. Pure. */

export type Numbers =
  { readonly ok: true; readonly values: readonly number[] } | { readonly ok: false; readonly why: string }

export interface Bounds {
  readonly what: string
  readonly max: number
}

export const PERCENTS: Bounds = { what: 'Percentages', max: 1000 }
export const SEEDS: Bounds = { what: 'Seeds', max: 4_294_967_295 }
/** Limit of the controller for one sweep. */
export const MAX_VALUES = 200
const MAX_RUNS = 2_000

/** Number of values per dimension. */
export interface GridCounts {
  readonly percents: number
  readonly seeds: number
  /** Fields varied in addition to the percentage, by this form and by the scenario. */
  readonly others: ReadonlyArray<{ readonly field: string; readonly values: number }>
}

/**
 * Whole numbers and ranges, separated by commas; returned in ascending order without duplicates. The default
 * step of a range is 1.
 */
export function readNumbers(text: string, { what, max }: Bounds): Numbers {
  const refused = (why: string): Numbers => ({ ok: false, why: `${what}: ${why}` })
  const values = new Set<number>()
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '')
      return refused(
        text.trim() === ''
          ? 'enter at least one value, for example 0, 25, 50 or 0..100:25.'
          : 'remove the extra comma.',
      )
    const match = /^(\d{1,10})(?:\.\.(\d{1,10})(?::(\d{1,10}))?)?$/.exec(part)
    if (match === null)
      return refused(`${JSON.stringify(part)} is neither a whole number nor a range such as 0..100:25.`)
    const from = Number(match[1])
    const to = match[2] === undefined ? from : Number(match[2])
    const step = match[3] === undefined ? 1 : Number(match[3])
    if (step === 0) return refused(`${part} has a step of 0.`)
    if (to < from) return refused(`${part} ends before it starts.`)
    if (to > max) return refused(`${part} exceeds ${max}.`)
    if ((to - from) / step >= MAX_VALUES) return refused(`enter at most ${MAX_VALUES} values.`)
    for (let value = from; value <= to; value += step) values.add(value)
  }
  if (values.size > MAX_VALUES) return refused(`enter at most ${MAX_VALUES} values.`)
  return { ok: true, values: [...values].sort((a, b) => a - b) }
}

/** Separated by commas or lines; empty: the default of the controller. */
export function readObjectives(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((each) => each.trim())
    .filter((each) => each !== '')
}

/** Why the sweep is too large; null: it is not. */
export function tooMany(grid: GridCounts): string | null {
  return runsOf(grid) > MAX_RUNS ? `${runsText(grid)}; the limit is ${MAX_RUNS}.` : null
}

/** `5 percentages × 3 seeds × 2 values of fleet.0.count = 30 runs` */
export function runsText(grid: GridCounts): string {
  const others = grid.others.map(({ field, values }) => `${counted(values, 'value')} of ${field}`)
  const factors = [counted(grid.percents, 'percentage'), counted(grid.seeds, 'seed'), ...others]
  return `${factors.join(' × ')} = ${counted(runsOf(grid), 'run')}`
}

function runsOf({ percents, seeds, others }: GridCounts): number {
  return others.reduce((product, { values }) => product * values, percents * seeds)
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** The default percentages, including the current one for comparison. */
export function defaultPercents(current: number | null): string {
  const read = readNumbers(DEFAULT_PERCENTS, PERCENTS)
  return current === null || (read.ok && read.values.includes(current))
    ? DEFAULT_PERCENTS
    : `${DEFAULT_PERCENTS}, ${current}`
}

const DEFAULT_PERCENTS = '0..100:25'

export const DEFAULT_OBJECTIVE = 'starvation.total<=20'
