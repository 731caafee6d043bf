import ts from 'typescript'

export interface FunctionName {
  readonly file: string
  readonly name: string
}

/** Folders whose functions may take the whole cluster: they are its state and what changes it. */
const MAY = /^controller\/(?:state|engine)\//

/** Properties of the cluster, and what they hold. Tables of records and the books of checkers hold others. */
const COLLECTIONS = { tasks: 'LiveTask', nodes: 'LiveNode' }

/**
 * Returns the functions outside `controller/state` and `controller/engine` with a parameter that leads to
 * every live task and node, and so to every GPU: an object with both collections.
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
        if (node.parameters.some((each) => isWholeCluster(checker.getTypeAtLocation(each), checker)))
          found.push({ file, name: node.name?.getText(source) ?? `line ${lineOf(source, node)}` })
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

function isWholeCluster(type: ts.Type, checker: ts.TypeChecker): boolean {
  return Object.entries(COLLECTIONS).every(([name, item]) => {
    const property = type.getProperty(name)
    return property !== undefined && checker.typeToString(checker.getTypeOfSymbol(property)).includes(item)
  })
}

function lineOf(source: ts.SourceFile, node: ts.Node): number {
  return source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
}
