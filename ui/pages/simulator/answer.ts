/** Converts an answer to a number if it is one. Pure. */
export function answerOf(text: string): string | number {
  const trimmed = text.trim()
  return /^-?\d{1,15}(\.\d{1,9})?$/.test(trimmed) ? Number(trimmed) : trimmed
}
