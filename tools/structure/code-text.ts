import ts from 'typescript'

/** Returns the source without its comments; line breaks stay where they were. */
export function codeText(path: string, source: string): string {
  const kind = path.endsWith('.tsx') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, kind)
  const comments = new Map<number, number>()
  const visit = (node: ts.Node): void => {
    // Text between JSX tags may look like a comment.
    if (!ts.isJsxText(node)) {
      const ranges = [
        ...(ts.getLeadingCommentRanges(source, node.getFullStart()) ?? []),
        ...(ts.getTrailingCommentRanges(source, node.getEnd()) ?? []),
      ]
      for (const { pos, end } of ranges) comments.set(pos, end)
    }
    for (const child of node.getChildren(file)) visit(child)
  }
  visit(file)
  let text = source
  for (const [pos, end] of [...comments].toSorted(([a], [b]) => b - a))
    text = text.slice(0, pos) + text.slice(pos, end).replaceAll(/[^\n]/g, ' ') + text.slice(end)
  return text
}
