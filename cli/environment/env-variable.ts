/**
 * What an environment variable of ours is, and how common values are read: `undefined` says that a text is
 * out of range.
 */

export interface EnvironmentVariable<T> {
  readonly name: string
  /** What is allowed, in words that follow "must be". */
  readonly range: string
  /** As it would be written; null: unset. */
  readonly byDefault: string | null
  readonly meaning: string
  /** Reads a value that is not empty; `undefined` says that it is out of range. */
  read(text: string): T | undefined
  /** Its value is shown nowhere. */
  readonly isSecret?: true
}

export const WORD = /^[^\s\p{Cc}]{1,200}$/u
export const ONE_LINE = /^[^\p{Cc}]+$/u

/** One of blanks alone is somebody's mistake, and would be made as a folder of that name. */
export function aPath(text: string): string | undefined {
  return text.includes('\0') || text.trim() === '' ? undefined : text
}

export function integerIn(text: string, min: number, max: number): number | undefined {
  const value = /^(?:0|[1-9]\d{0,8})$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

/** With two digits after the point at most. */
export function decimalIn(text: string, min: number, max: number): number | undefined {
  const value = /^(?:0|[1-9]\d{0,8})(?:\.\d{1,2})?$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

export function trueOrFalse(text: string): boolean | undefined {
  return text === 'true' ? true : text === 'false' ? false : undefined
}
