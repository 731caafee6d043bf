import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { cruise, type ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'
import { type Import, type ImportCircles, importCircles } from './import-circles.ts'

const FOLDERS = [
  'protocol',
  'controller',
  'gpu-server',
  'operator',
  'simulator',
  'services',
  'clients',
  'ui',
  'cli',
  'tools',
  'test',
]

export type ImportViolation = { readonly rule: string; readonly from: string; readonly to: string }

export type CruisedImports = {
  readonly moduleCount: number
  readonly importCount: number
  readonly violations: readonly ImportViolation[]
  /** Source files that the cruise never saw: nothing is proven about them. */
  readonly unseen: readonly string[]
  /** Imports between files of the product; tests and tools are left out, as they are for `circles`. */
  readonly imports: readonly Import[]
  readonly circles: ImportCircles
}

/** Follows every import below `root` and holds it against .dependency-cruiser.cjs. */
export async function cruiseImports(root: string): Promise<CruisedImports> {
  const folders = FOLDERS.filter((folder) => existsSync(join(root, folder)))
  const config = join(import.meta.dirname, '..', '..', '.dependency-cruiser.cjs')
  const options = await extractDepcruiseOptions(config)
  const { output } = await cruise(folders, { ...options, baseDir: root, outputType: 'json' })
  const result = JSON.parse(String(output)) as ICruiseResult
  const imports = importsOfProduct(result)
  return {
    moduleCount: result.summary.totalCruised,
    importCount: result.summary.totalDependenciesCruised ?? 0,
    violations: result.summary.violations.map(({ rule, from, to }) => ({ rule: rule.name, from, to })),
    unseen: unseenFiles(root, folders, result),
    imports,
    circles: importCircles(imports),
  }
}

function importsOfProduct({ modules }: ICruiseResult): Import[] {
  const isOfProduct = (file: string): boolean =>
    FOLDERS.some((folder) => folder !== 'test' && folder !== 'tools' && file.startsWith(`${folder}/`))
  return modules
    .filter(({ source }) => isOfProduct(source))
    .flatMap(({ source, dependencies }) =>
      dependencies
        .filter(({ resolved }) => isOfProduct(resolved))
        .map(({ resolved, dependencyTypes }) => ({
          from: source,
          to: resolved,
          isTypeOnly: dependencyTypes.includes('type-only'),
        })),
    )
}

function unseenFiles(root: string, folders: readonly string[], result: ICruiseResult): string[] {
  const seen = new Set(result.modules.map((module) => module.source))
  const patterns = folders.map((folder) => `${folder}/**/*.{ts,tsx}`)
  return globSync(patterns, { cwd: root, exclude: ['**/node_modules/**', '**/*.d.ts'] }).filter(
    (file) => !seen.has(file),
  )
}
