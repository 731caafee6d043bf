import ts from 'typescript'

/** A piece of text that people read, and the line where it begins (from 1). */
export interface Text {
  readonly line: number
  readonly text: string
}

/** Comments, string literals, template parts and JSX text of a TypeScript source, in order. */
export function textsOfSource(path: string, source: string): readonly Text[] {
  const kind = path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, kind)
  const lineOf = (at: number): number => file.getLineAndCharacterOfPosition(at).line + 1
  const found: Text[] = []
  const comments = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of commentsAround(source, node)) comments.set(pos, end)
    if (isText(node)) found.push({ line: lineOf(node.getStart(file)), text: node.text })
    for (const child of node.getChildren(file)) visit(child)
  }
  visit(file)
  for (const [pos, end] of comments) found.push({ line: lineOf(pos), text: source.slice(pos, end) })
  return found.toSorted((a, b) => a.line - b.line)
}

function commentsAround(source: string, node: ts.Node): readonly ts.CommentRange[] {
  return [
    ...(ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []),
    ...(ts.getTrailingCommentRanges(source, node.getEnd()) ?? []),
  ]
}

function isText(node: ts.Node): node is ts.StringLiteral | ts.JsxText | ts.TemplateLiteralLikeNode {
  return (
    ts.isStringLiteral(node) ||
    ts.isNoSubstitutionTemplateLiteral(node) ||
    ts.isTemplateHead(node) ||
    ts.isTemplateMiddle(node) ||
    ts.isTemplateTail(node) ||
    ts.isJsxText(node)
  )
}
