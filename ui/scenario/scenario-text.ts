/**
 * Form edits of a scenario text: one value or one list entry at a time. Only the characters of that value are
 * replaced, so that the rest of the text keeps its comments and layout. Pure.
 */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  type Document,
  type Pair,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
} from 'yaml'

export type Path = readonly (string | number)[]

/** Larger texts have no form: parsing them on every key press would be slow. */
export const MAX_FORM_CHARACTERS = 65_536

export interface ScenarioText {
  readonly text: string
  readonly document: Document.Parsed<ParsedNode>
}

/** Null: the text is too large, invalid YAML, or not a map; then the form has nothing to show. */
export function readScenarioText(text: string): ScenarioText | null {
  if (text.length > MAX_FORM_CHARACTERS) return null
  const document = parseDocument(text)
  return document.errors.length === 0 && isMap(document.contents) ? { text, document } : null
}

/** The value at a path as text; `undefined`: none; null: not a single value. */
export function valueAt({ document }: ScenarioText, path: Path): string | null | undefined {
  const node: unknown = document.getIn(path, true)
  if (node === undefined || node === null) return isBarred(document, path) ? null : undefined
  if (!isScalar(node)) return null
  return node.value === null ? undefined : String(node.value)
}

/** True if an alias or a value is on the path. */
function isBarred(document: ScenarioText['document'], path: Path): boolean {
  return path.some((_, index) => {
    const node: unknown = index === 0 ? undefined : document.getIn(path.slice(0, index), true)
    return isAlias(node) || (isScalar(node) && node.value !== null)
  })
}

/** Number of entries of a list; 0 without a list. */
export function lengthAt({ document }: ScenarioText, path: Path): number {
  const node: unknown = document.getIn(path, true)
  return isSeq(node) ? node.items.length : 0
}

/** Returns the text with the value at the path; null: impossible without other changes. */
export function withValue(scenario: ScenarioText, path: Path, value: string): string | null {
  const node: unknown = scenario.document.getIn(path, true)
  if (node !== undefined && node !== null && !isScalar(node)) return null
  if (isScalar(node) && node.range !== null && node.range !== undefined && node.source !== '') {
    return spliced(
      scenario.text,
      node.range[0],
      node.range[1],
      written(value, isQuoted(node) || isJson(scenario)),
    )
  }
  return withPair(scenario, path, value)
}

/**
 * Returns the text with one more entry at the end of the list, which is created if missing. @param entry in
 * flow style, as in JSON
 */
export function withEntry(scenario: ScenarioText, path: Path, entry: string): string | null {
  const list: unknown = scenario.document.getIn(path, true)
  if (list === undefined || (isScalar(list) && list.value === null)) return withPair(scenario, path, [entry])
  if (!isSeq(list) || list.range === null || list.range === undefined) return null
  const { text } = scenario
  const last = list.items.at(-1) as ParsedNode | undefined
  if (last === undefined) return spliced(text, list.range[0], list.range[1], `[${entry}]`)
  if (list.flow === true) return spliced(text, last.range[1], last.range[1], `, ${entry}`)
  const column = dashColumn(text, last)
  const end = endOfLine(text, lastCharacter(text, last))
  return column === null ? null : spliced(text, end, end, `\n${' '.repeat(column)}- ${entry}`)
}

/** Returns the text without the entry; null: it is the only one, or it cannot be removed alone. */
export function withoutEntry(scenario: ScenarioText, path: Path, index: number): string | null {
  const list: unknown = scenario.document.getIn(path, true)
  if (!isSeq(list) || list.items.length < 2) return null
  const { text } = scenario
  const items = list.items as ParsedNode[]
  const [before, item, after] = [items[index - 1], items[index], items[index + 1]]
  if (item === undefined) return null
  if (list.flow === true) {
    if (after !== undefined) return spliced(text, item.range[0], after.range[0], '')
    return spliced(text, (before as ParsedNode).range[1], item.range[1], '')
  }
  if (dashColumn(text, item) === null) return null
  const start = startOfLine(text, item.range[0])
  return spliced(text, start, Math.min(text.length, endOfLine(text, lastCharacter(text, item)) + 1), '')
}

// ---- positions ----

function withPair(
  { text, document }: ScenarioText,
  path: Path,
  value: string | readonly [string],
): string | null {
  const at = path.findLastIndex((_, index) => isMap(document.getIn(path.slice(0, index), true)))
  const map: unknown = document.getIn(path.slice(0, at), true)
  const keys = path.slice(at)
  if (
    !isMap(map) ||
    map.range === null ||
    map.range === undefined ||
    keys.some((key) => typeof key === 'number')
  )
    return null
  // The next key of the path does not lead to a map, but for example to a name or an alias.
  const next = pairOf(map, String(keys[0]))
  if (next !== undefined && !isEmptyValue(next)) return null
  const asJson = isJson({ document })
  const inner = typeof value === 'string' ? written(value, asJson) : `[${value[0]}]`
  const nested = keys
    .slice(1)
    .reduceRight<string>((rest, key) => `{ ${written(String(key), asJson)}: ${rest} }`, inner)
  if (next !== undefined) {
    const key = next.key as ParsedNode
    const colon = text.indexOf(':', key.range[1])
    return spliced(text, colon + 1, colon + 1, ` ${nested}`)
  }
  const pair = `${written(String(keys[0]), asJson)}: ${nested}`
  const last = map.items.at(-1)
  if (map.flow === true) {
    if (last === undefined) return spliced(text, map.range[0], map.range[1], `{ ${pair} }`)
    const end = ((last.value ?? last.key) as ParsedNode).range[1]
    return spliced(text, end, end, `, ${pair}`)
  }
  // After the head of the file rather than at its end; elsewhere after the last entry.
  const behind = (at === 0 ? (map.items.findLast(({ key }) => isHead(key)) ?? map.items[0]) : last) as Pair<
    ParsedNode,
    ParsedNode | null
  >
  const column = behind.key.range[0] - startOfLine(text, behind.key.range[0])
  const end = endOfLine(text, lastCharacter(text, behind.value ?? behind.key))
  // In a list entry the first key follows a dash: use the column of the key.
  return spliced(text, end, end, `\n${' '.repeat(column)}${pair}`)
}

const HEAD = ['scenario', 'description', 'version', 'seed', 'clock']

function isHead(key: unknown): boolean {
  return isScalar(key) && HEAD.includes(String(key.value))
}

export function pairOf(map: YAMLMap, key: string): Pair | undefined {
  return map.items.find((pair) => isScalar(pair.key) && String(pair.key.value) === key)
}

function isEmptyValue({ value }: Pair): boolean {
  return value === null || (isScalar(value) && value.value === null && (value.source ?? '') === '')
}

function isQuoted(node: Scalar): boolean {
  return node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE'
}

/** True if the keys are quoted; new entries are then quoted too. */
export function isJson({ document }: Pick<ScenarioText, 'document'>): boolean {
  const key: unknown = isMap(document.contents) ? document.contents.items[0]?.key : undefined
  return isScalar(key) && isQuoted(key)
}

/** Numbers stay numbers; text is quoted where it could be read as another type. */
function written(value: string, isQuotedAlways: boolean): string {
  if (/^-?(0|[1-9]\d*)(\.\d+)?$/.test(value)) return value
  const isPlain =
    /^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(value) &&
    !/^(true|false|null|yes|no|on|off|\d[\d_.eExo:-]*)$/i.test(value)
  return isPlain && !isQuotedAlways ? value : JSON.stringify(value)
}

/** Null: it does not follow a dash on the same line. */
function dashColumn(text: string, item: ParsedNode): number | null {
  const start = startOfLine(text, item.range[0])
  const match = /^( *)- +$/.exec(text.slice(start, item.range[0]))
  return match === null ? null : (match[1] as string).length
}

export function lastCharacter(text: string, node: ParsedNode): number {
  let at = Math.max(node.range[0], node.range[1] - 1)
  while (at > node.range[0] && /\s/.test(text[at] ?? '')) at -= 1
  return at
}

export function startOfLine(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1
}

export function endOfLine(text: string, at: number): number {
  const end = text.indexOf('\n', at)
  return end === -1 ? text.length : end
}

export function spliced(text: string, from: number, to: number, by: string): string {
  return text.slice(0, from) + by + text.slice(to)
}
