/** Reads events of a Headroom cluster in any of their stored forms. */
import type { FileBytes } from '../file-bytes.ts'
import { jsonElements } from './json-elements.ts'
import { textLines } from '../line-blocks.ts'
import { TraceError } from '../trace-error.ts'

/** The common fields of all forms. */
export interface SourceEvent {
  readonly seq: number
  /** ms since 1970, or RFC 3339. */
  readonly at: number | string
  readonly kind: string
  readonly taskId: string | null
  readonly by: string | null
  readonly data: Readonly<Record<string, unknown>>
}

type Json = Readonly<Record<string, unknown>>

/**
 * The events of a file, or null for lines that are not events but belong there (chain lines of a journal,
 * comments and ids of a stream, summaries):
 * - `headroom events -o jsonl`, a run's journal.jsonl: one event per line;
 * - `headroom events -o json`: an array;
 * - `GET /events`: pages, one per line;
 * - `GET /events/stream`: server-sent events.
 * Throws TraceError at a line that is not JSON.
 */
export async function* sourceEvents(source: FileBytes): AsyncGenerator<SourceEvent | null> {
  const [isArray, bytes] = await beginsWithBracket(source)
  if (isArray) {
    for await (const { line, text } of jsonElements(bytes)) yield eventOf(parsed(text, source.file, line))
    return
  }
  for await (const { line, text } of textLines(bytes)) {
    const json = jsonIn(text)
    if (json === null) continue
    const value = parsed(json, source.file, line)
    const items = isObject(value) ? value['items'] : undefined
    if (!Array.isArray(items)) yield eventOf(value)
    else for (const item of items) yield eventOf(item)
  }
}

/** The JSON of a line; null for a line of a stream without any. */
function jsonIn(text: string): string | null {
  if (text.startsWith('data:')) return text.slice('data:'.length)
  return /^(:|id:|event:|retry:)/.test(text) ? null : text
}

/** Reads the first chunk without consuming it. */
async function beginsWithBracket(source: FileBytes): Promise<readonly [boolean, FileBytes]> {
  const chunks = source.chunks[Symbol.asyncIterator]()
  const first = await chunks.next()
  const isArray = first.done !== true && /^\uFEFF?\s*\[/.test(first.value.toString('utf8', 0, 64))
  async function* again(): AsyncGenerator<Buffer> {
    try {
      for (let next = first; next.done !== true; next = await chunks.next()) yield next.value
    } finally {
      await chunks.return?.()
    }
  }
  return [isArray, { ...source, chunks: again() }]
}

function parsed(text: string, file: string, line: number): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new TraceError({ file, line }, `is not JSON: ${(error as Error).message}`, { cause: error })
  }
}

/** The API and a journal use different names for the same things. */
function eventOf(value: unknown): SourceEvent | null {
  if (!isObject(value)) return null
  const { seq, at, kind, by, data } = value
  if (
    typeof seq !== 'number' ||
    typeof kind !== 'string' ||
    (typeof at !== 'number' && typeof at !== 'string')
  )
    return null
  return {
    seq,
    at,
    kind,
    taskId: textOrNull(value['task_id'] ?? value['task']),
    by: textOrNull(by),
    data: isObject(data) ? data : {},
  }
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
