/** The readings as a readable table, and as rows for bench-results.json. */
import { meets, type Reading, type Target } from './targets.ts'

export interface ResultRow extends Target {
  readonly name: string
  readonly value: number
}

type Targets<N extends string> = Readonly<Record<N, Target>>

const HEAD = ['name', 'value', 'unit', 'floor', 'aim', 'verdict']

/** A measure without a reading has no row. */
export function rowsOf<N extends string>(
  readings: readonly Reading<N>[],
  targets: Targets<N>,
): readonly ResultRow[] {
  return readings.flatMap(({ name, value }) =>
    typeof value === 'string' ? [] : [{ name, value, ...targets[name] }],
  )
}

export function misses({ value, floor, better }: ResultRow): boolean {
  return floor !== null && !meets(value, floor, better)
}

export function tableOf<N extends string>(readings: readonly Reading<N>[], targets: Targets<N>): string {
  const lines = [HEAD, ...readings.map((reading) => cellsOf(reading, targets[reading.name]))]
  const widths = HEAD.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)))
  const isNumber = (column: number) => column === 1 || column === 3 || column === 4
  const padded = (cell: string, column: number) => {
    const width = widths[column] ?? 0
    return isNumber(column) ? cell.padStart(width) : cell.padEnd(width)
  }
  return lines.map((line) => line.map(padded).join('  ').trimEnd()).join('\n')
}

function cellsOf({ name, value }: Reading<string>, target: Target): string[] {
  const { unit, floor, aim } = target
  return [
    name,
    typeof value === 'string' ? '–' : figure(value),
    unit,
    floor === null ? '–' : figure(floor),
    figure(aim),
    verdictOf(value, target),
  ]
}

function verdictOf(value: Reading['value'], { floor, aim, better }: Target): string {
  if (typeof value === 'string') return value === 'skipped' ? 'skipped' : 'FAILED'
  if (meets(value, aim, better)) return 'meets the aim'
  if (floor === null) return 'no floor'
  return meets(value, floor, better) ? 'above the floor' : 'MISSES THE FLOOR'
}

/** Three digits are enough for a comparison. */
function figure(value: number): string {
  if (value >= 1000) return Math.round(value).toString()
  return String(Number(value.toPrecision(3)))
}
