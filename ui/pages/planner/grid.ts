/** What is tried: percentages and seeds as people write them, `0..100:25, 150`. Pure. */

export type Numbers =
  { readonly ok: true; readonly values: readonly number[] } | { readonly ok: false; readonly why: string }

export interface Bounds {
  readonly what: string
  readonly max: number
}

export const PERCENTS: Bounds = { what: 'Percentages', max: 1000 }
export const SEEDS: Bounds = { what: 'Seeds', max: 4_294_967_295 }
/** Of one sweep, as the controller allows. */
export const MAX_VALUES = 200
export const MAX_RUNS = 2_000

/** How many of each there are. */
export interface GridCounts {
  readonly percents: number
  readonly seeds: number
  /** Fields that are varied beside the percentage, by this form and by the scenario itself. */
  readonly others: ReadonlyArray<{ readonly field: string; readonly values: number }>
}

/** Whole numbers and ranges, parted by commas: rising, each once. A range without a step goes by 1. */
export function readNumbers(text: string, { what, max }: Bounds): Numbers {
  const refused = (why: string): Numbers => ({ ok: false, why: `${what}: ${why}` })
  const values = new Set<number>()
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '')
      return refused(
        text.trim() === '' ? 'write at least one, as 0, 25, 50 or 0..100:25.' : 'there is a comma too many.',
      )
    const match = /^(\d{1,10})(?:\.\.(\d{1,10})(?::(\d{1,10}))?)?$/.exec(part)
    if (match === null)
      return refused(`${JSON.stringify(part)} is neither a whole number nor a range as 0..100:25.`)
    const from = Number(match[1])
    const to = match[2] === undefined ? from : Number(match[2])
    const step = match[3] === undefined ? 1 : Number(match[3])
    if (step === 0) return refused(`${part} has a step of 0.`)
    if (to < from) return refused(`${part} ends before it begins.`)
    if (to > max) return refused(`${part} goes beyond ${max}.`)
    if ((to - from) / step >= MAX_VALUES) return refused(`at most ${MAX_VALUES}.`)
    for (let value = from; value <= to; value += step) values.add(value)
  }
  if (values.size > MAX_VALUES) return refused(`at most ${MAX_VALUES}.`)
  return { ok: true, values: [...values].sort((a, b) => a - b) }
}

/** One a comma or line; empty: what the controller takes by itself. */
export function readObjectives(text: string): readonly string[] {
  return text
    .split(/[,\n]/)
    .map((each) => each.trim())
    .filter((each) => each !== '')
}

/** Why there are too many; null: there are not. */
export function tooMany(grid: GridCounts): string | null {
  return runsOf(grid) > MAX_RUNS ? `${runsText(grid)}; at most ${MAX_RUNS} are made.` : null
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

/**
 * What is tried unless somebody writes something else: with what is set now, so that it can be held against
 * the others.
 */
export function usualPercents(current: number | null): string {
  const read = readNumbers(USUAL, PERCENTS)
  return current === null || (read.ok && read.values.includes(current)) ? USUAL : `${USUAL}, ${current}`
}

const USUAL = '0..100:25'
