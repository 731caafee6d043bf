/**
 * Finds a fragment of code by its containing function and its tokens, so that a mutant survives new
 * formatting, new comments, and moves within the file.
 */
import ts from 'typescript'

export interface Span {
  readonly start: number
  readonly end: number
}

interface Token extends Span {
  readonly text: string
}

/**
 * Returns the span of `find` inside the declaration.
 *
 * @param inside the name of a function, constant or type, `Class.member` for a member; '' for the whole file
 * @throws RangeError when the declaration is missing, or the fragment is not in it exactly once
 */
export function locate(source: string, inside: string, find: string): Span {
  const { start, end } = declarationNamed(source, inside)
  const tokens = tokensOf(source.slice(start, end), start)
  const wanted = tokensOf(find, 0).map(({ text }) => text)
  const found = occurrences(tokens, wanted)
  const [only] = found
  if (only === undefined || found.length > 1)
    throw new RangeError(
      `${inside || 'the file'} contains the fragment ${found.length} times: ${find.trim()}`,
    )
  return only
}

function declarationNamed(source: string, inside: string): Span {
  if (inside === '') return { start: 0, end: source.length }
  const found = namedDeclarations(source).filter(({ name }) => name === inside)
  const [only] = found
  if (only === undefined || found.length > 1)
    throw new RangeError(`${found.length} declarations are named ${inside}`)
  return only
}

interface NamedDeclaration extends Span {
  readonly name: string
}

/** Top-level declarations and members of classes, in the order of the file. */
function namedDeclarations(source: string): readonly NamedDeclaration[] {
  const file = ts.createSourceFile('file.ts', source, ts.ScriptTarget.Latest, true)
  return file.statements.flatMap((statement) => {
    const span = { start: statement.getStart(file), end: statement.end }
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => ({ ...span, name: name.getText(file) }))
    if (ts.isClassDeclaration(statement)) {
      const name = statement.name?.text ?? ''
      return [{ ...span, name }, ...statement.members.map((member) => memberOf(name, member, file))]
    }
    const { name } = statement as ts.Statement & { readonly name?: ts.Node }
    return name === undefined ? [] : [{ ...span, name: name.getText(file) }]
  })
}

function memberOf(className: string, member: ts.ClassElement, file: ts.SourceFile): NamedDeclaration {
  const name = ts.isConstructorDeclaration(member) ? 'constructor' : (member.name?.getText(file) ?? '')
  const kind = ts.isGetAccessor(member) ? 'get ' : ts.isSetAccessor(member) ? 'set ' : ''
  return { name: `${className}.${kind}${name}`, start: member.getStart(file), end: member.end }
}

function occurrences(tokens: readonly Token[], wanted: readonly string[]): readonly Span[] {
  const last = wanted.length - 1
  return tokens.flatMap((first, index) => {
    const end = tokens[index + last]
    if (end === undefined || !wanted.every((text, i) => tokens[index + i]?.text === text)) return []
    return [{ start: first.start, end: end.end }]
  })
}

const CLOSERS = new Set([')', ']', '}'])
/** After one of these tokens a slash begins a regular expression. */
const BEFORE_A_VALUE = new Set([
  '(',
  ',',
  '=',
  ':',
  '[',
  '!',
  '&&',
  '||',
  '??',
  '?',
  '{',
  '}',
  'return',
  '=>',
  '',
])

/** Without comments, whitespace, and the commas that a formatter adds before a closing bracket. */
function tokensOf(text: string, offset: number): readonly Token[] {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard, text)
  const tokens: Token[] = []
  const templates: number[] = []
  let depth = 0
  for (let kind = scanner.scan(); kind !== ts.SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind === ts.SyntaxKind.SlashToken && BEFORE_A_VALUE.has(tokens.at(-1)?.text ?? ''))
      kind = scanner.reScanSlashToken()
    if (kind === ts.SyntaxKind.CloseBraceToken && templates.at(-1) === depth) {
      kind = scanner.reScanTemplateToken(false)
      if (kind === ts.SyntaxKind.TemplateTail) templates.pop()
    } else if (kind === ts.SyntaxKind.TemplateHead) templates.push(depth)
    else if (kind === ts.SyntaxKind.OpenBraceToken) depth += 1
    else if (kind === ts.SyntaxKind.CloseBraceToken) depth -= 1
    const token = scanner.getTokenText()
    if (CLOSERS.has(token) && tokens.at(-1)?.text === ',') tokens.pop()
    tokens.push({ text: token, start: offset + scanner.getTokenStart(), end: offset + scanner.getTokenEnd() })
  }
  return tokens
}
