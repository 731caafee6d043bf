/**
 * Checks fields of parsed JSON by hand: a schema library takes longer than the parsing itself. Every function
 * throws LineProblem.
 */

/** A problem of a line. The reader, which knows file and line, converts it to a TraceError. */
export class LineProblem extends Error {
  readonly field: string | undefined

  constructor(field: string | undefined, problem: string) {
    super(problem)
    this.field = field
  }
}

export type Json = Record<string, unknown>

const MAX_TEXT_LENGTH = 256

export function parseObject(text: string): Json {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw new LineProblem(undefined, `is not JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new LineProblem(undefined, 'must be a JSON object')
  return value as Json
}

export function object(value: unknown, field: string): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  throw new LineProblem(field, value === undefined ? 'is missing' : `must be an object, is ${shown(value)}`)
}

export function refuseUnknownKeys(value: Json, known: ReadonlySet<string>, prefix: string): void {
  for (const key in value)
    if (!known.has(key))
      throw new LineProblem(`${prefix}${key}`, `is not a known key (${[...known].join(', ')})`)
}

export function pairs(
  value: unknown,
  field: string,
  leastSecond: number,
): ReadonlyArray<readonly [number, number]> {
  if (!Array.isArray(value))
    throw new LineProblem(
      field,
      value === undefined ? 'is missing' : `must be a list of pairs, is ${shown(value)}`,
    )
  for (let i = 0; i < value.length; i++) {
    const pair: unknown = value[i]
    if (!Array.isArray(pair) || pair.length !== 2)
      throw new LineProblem(`${field}[${i}]`, `must be a pair of numbers, is ${shown(pair)}`)
    // The name of the field is only built for an error: a trace has millions of pairs.
    if (!isInteger(pair[0], 0)) integer(pair[0], `${field}[${i}][0]`, 0)
    if (!isInteger(pair[1], leastSecond)) integer(pair[1], `${field}[${i}][1]`, leastSecond)
  }
  return value as Array<[number, number]>
}

function isInteger(value: unknown, least: number): boolean {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= least
}

export function integer(
  value: unknown,
  field: string,
  least: number,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  if (isInteger(value, least) && (value as number) <= most) return value as number
  if (value === undefined) throw new LineProblem(field, 'is missing')
  const range = most === Number.MAX_SAFE_INTEGER ? `of ${least} or more` : `from ${least} to ${most}`
  throw new LineProblem(field, `must be a whole number ${range}, is ${shown(value)}`)
}

export function textOf(value: unknown, field: string): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT_LENGTH) return value
  throw new LineProblem(
    field,
    value === undefined ? 'is missing' : `must be 1 to ${MAX_TEXT_LENGTH} characters, is ${shown(value)}`,
  )
}

export function optionalText(value: unknown, field: string): string | null {
  return value === undefined || value === null ? null : textOf(value, field)
}

const MAX_SHOWN_LENGTH = 60

export function shown(value: unknown): string {
  if (value === undefined) return 'missing'
  const text = JSON.stringify(value)
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`
}
