/**
 * Writes packages of many modules into a few files, once per version. test/support/preload.mjs loads those:
 * typebox alone has 370 modules, which cost every command that reads a scenario 0.1 s of CPU.
 */
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build, type Plugin } from 'vite'

const MODULES = join(import.meta.dirname, '../../node_modules')
const PACKAGES = ['kysely', 'typebox', 'yaml']
/** Everything that is imported of them. Modules that entries share are loaded once. */
const ENTRIES = [
  'kysely',
  'typebox',
  'typebox/compile',
  'typebox/format',
  'typebox/schema',
  'typebox/value',
  'yaml',
]
/** Its names have to be listed for an import by name. */
const COMMON_JS = 'yaml'

/** Sets the variable that preload.mjs reads: the file of each entry. */
export default async function setUp(): Promise<void> {
  const versions = PACKAGES.map((name) => `${name}-${versionOf(name)}`).join('-')
  const folder = join(MODULES, '.cache/bundled', versions)
  if (!existsSync(folder)) await bundle(folder)
  const urls = ENTRIES.map((entry) => [entry, pathToFileURL(join(folder, fileOf(entry))).href])
  process.env['HEADROOM_BUNDLED_PACKAGES'] = JSON.stringify(Object.fromEntries(urls))
}

function versionOf(name: string): string {
  const text = readFileSync(join(MODULES, name, 'package.json'), 'utf8')
  return (JSON.parse(text) as { readonly version: string }).version
}

const fileOf = (entry: string): string => `${entry.replace('/', '-')}.mjs`

async function bundle(folder: string): Promise<void> {
  const unfinished = `${folder}.${process.pid}`
  await build({
    configFile: false,
    logLevel: 'warn',
    plugins: [withNames(COMMON_JS)],
    ssr: { noExternal: true },
    build: {
      ssr: true,
      minify: false,
      outDir: unfinished,
      rolldownOptions: {
        input: Object.fromEntries(ENTRIES.map((entry) => [fileOf(entry), entry])),
        output: { entryFileNames: '[name]', chunkFileNames: '[name]-[hash].mjs' },
        preserveEntrySignatures: 'strict',
      },
    },
  })
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    // Another run has finished first.
    if (!existsSync(folder)) throw error
    rmSync(unfinished, { recursive: true })
  }
}

function withNames(name: string): Plugin {
  const require = createRequire(import.meta.url)
  const id = `\0${name}`
  return {
    name: 'names of a CommonJS module',
    enforce: 'pre',
    resolveId: (source, importer) => (source === name && importer !== id ? id : null),
    load: (loaded) =>
      loaded === id
        ? `import all from '${name}'\nexport default all\n` +
          `export const { ${Object.keys(require(name) as object).join(', ')} } = all\n`
        : null,
  }
}
