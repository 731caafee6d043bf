/**
 * Parses text as one YAML 1.2 document, or reports problems. All sizes are bounded, so that a hostile file is
 * refused within about a second.
 */
import { Composer, type CST, type Document, Lexer, LineCounter, type ParsedNode, Parser } from 'yaml'
import { type Position, ProblemList } from './problem.ts'

/** 1 MiB. */
export const MAX_TEXT_BYTES = 1_048_576
/** Lists and maps inside each other. */
export const MAX_DEPTH = 64
/** 64 KiB of one value or comment. */
const MAX_LEXEME_LENGTH = 65_536
/** Words, signs, spaces and line ends: about a second of parsing. */
const MAX_LEXEMES = 500_000
/** Backslashes in quoted text: an invalid one costs as much as a hundred words. */
const MAX_ESCAPES = 10_000
const MAX_SYNTAX_ERRORS = 100

export interface Syntax {
  /** Null when there are problems. */
  readonly document: Document.Parsed<ParsedNode> | null
  readonly problems: ProblemList
}

/** Parses the text as YAML. Never throws because of its content. */
export function parseYaml(text: string): Syntax {
  const lines = new LineCounter()
  lines.addNewLine(0)
  const problems = new ProblemList((offset) => positionOf(lines, offset))
  const tokens =
    Buffer.byteLength(text) > MAX_TEXT_BYTES ? tooLarge(problems) : tokensOf(text, lines, problems)
  const document = problems.count > 0 ? null : compose(tokens, text.length, problems)
  return { document: problems.count > 0 ? null : document, problems }
}

function positionOf(lines: LineCounter, offset: number): Position {
  const { line, col } = lines.linePos(offset)
  return { line, column: col }
}

function tooLarge(problems: ProblemList): CST.Token[] {
  problems.add(0, null, `is larger than ${MAX_TEXT_BYTES} bytes`)
  return []
}

/** The composer of yaml recurses and cannot be interrupted, so depth and counts are limited first. */
function tokensOf(text: string, lines: LineCounter, problems: ProblemList): CST.Token[] {
  const parser = new Parser(lines.addNewLine)
  const excessOf = createExcessTest()
  const tokens: CST.Token[] = []
  let errors = 0
  for (const lexeme of new Lexer().lex(text)) {
    const excess = excessOf(lexeme)
    if (excess !== null) {
      problems.add(parser.offset, null, excess)
      return []
    }
    for (const token of parser.next(lexeme)) {
      tokens.push(token)
      if (token.type === 'error') errors++
    }
    if (errors > MAX_SYNTAX_ERRORS) break
  }
  tokens.push(...parser.end())
  refuseSecondDocument(tokens, problems)
  refuseDepth(tokens, problems)
  return tokens
}

/**
 * Returns a test that names the limit a lexeme exceeds first, or null. Brackets are counted here, other lists
 * and maps when their tokens are complete.
 */
function createExcessTest(): (lexeme: string) => string | null {
  let [lexemes, escapes, brackets] = [0, 0, 0]
  return (lexeme) => {
    if (lexeme === '[' || lexeme === '{') brackets++
    else if (lexeme === ']' || lexeme === '}') brackets--
    else if (lexeme.startsWith('"')) for (const character of lexeme) if (character === '\\') escapes++
    if (brackets > MAX_DEPTH) return DEPTH_DETAIL
    if (lexeme.length > MAX_LEXEME_LENGTH) return `a value may have at most ${MAX_LEXEME_LENGTH} characters`
    if (escapes > MAX_ESCAPES) return `quoted text may have at most ${MAX_ESCAPES} backslashes in all`
    if (++lexemes > MAX_LEXEMES)
      return (
        `a scenario may have at most ${MAX_LEXEMES} words and signs; ` +
        'tasks by the thousand belong into a trace'
      )
    return null
  }
}

const DEPTH_DETAIL = `lists and maps may be nested at most ${MAX_DEPTH} deep`

function refuseSecondDocument(tokens: readonly CST.Token[], problems: ProblemList): void {
  const second = tokens.filter((token) => token.type === 'document')[1]
  if (second !== undefined)
    problems.add(second.offset, null, 'a scenario is one YAML document; here a second one begins')
}

function refuseDepth(tokens: readonly CST.Token[], problems: ProblemList): void {
  const open: Array<{ readonly token: CST.Token; readonly depth: number }> = []
  for (const token of tokens)
    if (token.type === 'document' && token.value !== undefined) open.push({ token: token.value, depth: 1 })
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { token, depth } = next
    if (!('items' in token)) continue
    if (depth > MAX_DEPTH) return problems.add(token.offset, null, DEPTH_DETAIL)
    for (const { key, value } of token.items) {
      if (key !== undefined && key !== null) open.push({ token: key, depth: depth + 1 })
      if (value !== undefined && value !== null) open.push({ token: value, depth: depth + 1 })
    }
  }
}

function compose(
  tokens: Iterable<CST.Token>,
  length: number,
  problems: ProblemList,
): Document.Parsed<ParsedNode> | null {
  // uniqueKeys compares every key with every other; `document.ts` refuses duplicates in one pass.
  const composer = new Composer<ParsedNode>({
    version: '1.2',
    schema: 'core',
    merge: false,
    uniqueKeys: false,
    resolveKnownTags: false,
    logLevel: 'silent',
  })
  let first: Document.Parsed<ParsedNode> | null = null
  for (const document of composer.compose(tokens, true, length)) {
    first ??= document
    for (const { pos, message } of [...document.errors, ...document.warnings])
      problems.add(pos[0], null, firstLine(message))
    const { explicit, version } = document.directives.yaml
    if (explicit === true && version !== '1.2') problems.add(0, null, `must be YAML 1.2, is ${version}`)
  }
  return first
}

function firstLine(message: string): string {
  const end = message.indexOf('\n')
  return end === -1 ? message : message.slice(0, end)
}
