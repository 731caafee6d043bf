export interface ProsePart {
  readonly text: string
  readonly isCode: boolean
}

/** Splits text at pairs of backticks; an unpaired backtick stays. Pure. */
export function proseParts(text: string): readonly ProsePart[] {
  const parts: ProsePart[] = []
  let end = 0
  for (const match of text.matchAll(/`([^`\n]+)`/g)) {
    if (match.index > end) parts.push({ text: text.slice(end, match.index), isCode: false })
    parts.push({ text: match[1] as string, isCode: true })
    end = match.index + match[0].length
  }
  return end < text.length ? [...parts, { text: text.slice(end), isCode: false }] : parts
}
