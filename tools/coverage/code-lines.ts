import ts from 'typescript'

/**
 * The numbers of the lines on which something stands that can run: no types, no comments, no imports, no lone
 * brackets. Coverage is counted over these, because V8 calls every line of a loaded file covered, comments
 * too. A file of types has none.
 */
export function codeLines(source: string): number[] {
  const file = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest)
  const lines = new Set<number>()
  const visit = (node: ts.Node): void => {
    if (neverRuns(node)) return
    if (node.getChildCount(file) === 0 && node.getWidth(file) > 0)
      lines.add(file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1)
    ts.forEachChild(node, visit)
  }
  ts.forEachChild(file, visit)
  return [...lines].toSorted((a, b) => a - b)
}

function neverRuns(node: ts.Node): boolean {
  return (
    ts.isTypeNode(node) ||
    ts.isTypeParameterDeclaration(node) ||
    ts.isTypeAliasDeclaration(node) ||
    ts.isInterfaceDeclaration(node) ||
    ts.isImportDeclaration(node) ||
    ts.isExportDeclaration(node) ||
    node.kind === ts.SyntaxKind.EndOfFileToken
  )
}
