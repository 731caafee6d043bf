import type { Column } from '../output/table.ts'

export interface Check {
  readonly name: string
  /** warn: the finding matters for some uses only. */
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** The recommended action; null: no action is needed. */
  readonly todo: string | null
}

export function ok(name: string, detail: string): Check {
  return { name, verdict: 'ok', detail, todo: null }
}

export function warn(name: string, detail: string, todo: string | null): Check {
  return { name, verdict: 'warn', detail, todo }
}

export function fail(name: string, detail: string, todo: string): Check {
  return { name, verdict: 'fail', detail, todo }
}

export const CHECK_COLUMNS: readonly Column<Check>[] = [
  {
    title: 'VERDICT',
    of: ({ verdict }) => verdict,
    colour: (text, { verdict }, palette) =>
      verdict === 'ok' ? palette.green(text) : verdict === 'warn' ? palette.yellow(text) : palette.red(text),
  },
  { title: 'WHAT', of: ({ name }) => name },
  { title: 'FOUND', of: ({ detail, todo }) => (todo === null ? detail : `${detail}; ${todo}`) },
]
