import ts from 'typescript'

export interface FunctionName {
  readonly file: string
  readonly name: string
}

/** Folders whose functions may take the whole cluster: they are its state and what changes it. */
const MAY = /^controller\/(?:state|engine)\//

/**
 * Returns the functions outside `controller/state` and `controller/engine` with a parameter that leads to every
 * task and every node, and so to every GPU: an object with both collections.
 */
export function wholeClusterFunctions(files: readonly string[]): readonly FunctionName[] {
  const { config } = ts.readConfigFile('tsconfig.json', ts.sys.readFile) as { config: unknown }
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, process.cwd())
  delete options.tsBuildInfoFile
  const program = ts.createProgram(files, { ...options, incremental: false })
  const checker = program.getTypeChecker()
  const found: FunctionName[] = []
  for (const file of files) {
    if (MAY.test(file)) continue
    const source = program.getSourceFile(file)
    if (source === undefined) throw new Error(`${file} was not read`)
    const visit = (node: ts.Node): void => {
      if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined)
        if (node.parameters.some((each) => isWholeCluster(checker.getTypeAtLocation(each))))
          found.push({ file, name: node.name?.getText(source) ?? `line ${lineOf(source, node)}` })
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

function isWholeCluster(type: ts.Type): boolean {
  return ['tasks', 'nodes'].every((name) => {
    const property = type.getProperty(name)
    return property !== undefined && /Map$/.test(typeNameOf(property))
  })
}

function typeNameOf(property: ts.Symbol): string {
  const declared = property.valueDeclaration
  if (declared === undefined || !('type' in declared || 'initializer' in declared)) return ''
  const text = declared.getText()
  return /(?:Readonly)?Map\b/.test(text) ? 'Map' : ''
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
}
