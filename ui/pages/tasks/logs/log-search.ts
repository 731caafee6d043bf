/** Occurrences of a text in the lines of an output. Pure. */
import type { LogLine, LogSpan } from './log-lines.ts'

export interface LogMatch {
  readonly line: number
  /** Character of the line. */
  readonly at: number
}

export const MAX_MATCHES = 10_000

/** Upper and lower case are equal. */
export function matchesIn(lines: readonly LogLine[], text: string): readonly LogMatch[] {
  const wanted = text.toLowerCase()
  const matches: LogMatch[] = []
  if (wanted === '') return matches
  for (let line = 0; line < lines.length; line++) {
    const all = (lines[line] as LogLine).text.toLowerCase()
    for (let at = all.indexOf(wanted); at >= 0; at = all.indexOf(wanted, at + wanted.length)) {
      matches.push({ line, at })
      if (matches.length === MAX_MATCHES) return matches
    }
  }
  return matches
}

export interface MarkedSpan extends LogSpan {
  readonly isMarked: boolean
}

/** Cuts the spans of a line at its matches. */
export function markedSpans({ text, spans }: LogLine, wanted: string): readonly MarkedSpan[] {
  if (wanted === '') return spans.map((span) => ({ ...span, isMarked: false }))
  const matches = matchesIn([{ text, spans }], wanted)
  const cuts = matches.flatMap(({ at }) => [at, at + wanted.length])
  const marked: MarkedSpan[] = []
  let at = 0
  for (const span of spans) {
    const end = at + span.text.length
    const bounds = [at, ...cuts.filter((cut) => cut > at && cut < end), end]
    for (let part = 0; part + 1 < bounds.length; part++) {
      const from = bounds[part] as number
      const isMarked = matches.some((match) => from >= match.at && from < match.at + wanted.length)
      marked.push({ ...span, text: text.slice(from, bounds[part + 1]), isMarked })
    }
    at = end
  }
  return marked
}
