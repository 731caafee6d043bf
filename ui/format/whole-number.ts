/** Validation of whole numbers in text fields. Pure. */
import { whole } from './figures.ts'

export type Typed =
  { readonly ok: true; readonly value: number } | { readonly ok: false; readonly problem: string }

/** Accepts digits only: no sign, no fraction, no exponent, not empty. */
export function typedWhole(text: string, min: number, max: number): Typed {
  const problem = `Enter a whole number from ${whole(min)} to ${whole(max)}.`
  if (!/^\d{1,9}$/.test(text.trim())) return { ok: false, problem }
  const value = Number(text.trim())
  return value < min || value > max ? { ok: false, problem } : { ok: true, value }
}
