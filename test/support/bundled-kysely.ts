/** Writes the package kysely into one file, once per version. test/support/preload.mjs loads that file. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'vite'

const MODULES = join(import.meta.dirname, '../../node_modules')

export default async function setUp(): Promise<void> {
  const { version } = JSON.parse(readFileSync(join(MODULES, 'kysely/package.json'), 'utf8')) as {
    readonly version: string
  }
  const outDir = join(MODULES, '.cache/bundled')
  const fileName = `kysely-${version}.mjs`
  process.env['HEADROOM_BUNDLED_KYSELY'] = pathToFileURL(join(outDir, fileName)).href
  if (existsSync(join(outDir, fileName))) return
  await build({
    configFile: false,
    logLevel: 'warn',
    build: {
      lib: { entry: join(MODULES, 'kysely/dist/index.js'), formats: ['es'], fileName: () => fileName },
      outDir,
      minify: false,
    },
  })
}
