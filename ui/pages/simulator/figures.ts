/** Compares the metrics of two runs. Pure. */
import { UNKNOWN } from '../../format/figures.ts'

export interface Figure {
  /** Name in a report, for example `queue_wait_s.p99`. */
  readonly name: string
  readonly own: string
  readonly reference: string
}

const MAX_FIGURES = 60

/** Numbers that differ, by name; at most 60. */
export function figuresOf(own: object, reference: object): readonly Figure[] {
  const [left, right] = [numbersOf(own), numbersOf(reference)]
  const names = [...new Set([...left.keys(), ...right.keys()])]
  return names
    .filter((name) => left.get(name) !== right.get(name))
    .slice(0, MAX_FIGURES)
    .map((name) => ({ name, own: words(left.get(name)), reference: words(right.get(name)) }))
}

function numbersOf(value: object, prefix = ''): Map<string, number> {
  return new Map(
    Object.entries(value).flatMap(([key, each]: [string, unknown]): (readonly [string, number])[] => {
      const name = prefix === '' ? key : `${prefix}.${key}`
      if (typeof each === 'number') return [[name, each]]
      return typeof each === 'object' && each !== null && !Array.isArray(each)
        ? [...numbersOf(each, name)]
        : []
    }),
  )
}

function words(value: number | undefined): string {
  if (value === undefined) return UNKNOWN
  return Number.isInteger(value) ? String(value) : value.toFixed(2)
}
