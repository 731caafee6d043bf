/**
 * Removes files that are never loaded from the dependencies that the npm package carries: C sources, builds
 * for other systems, source maps and guides. A packed `headroom` then stays below 60 MB.
 *
 *     node tools/package/strip-packages.ts FOLDER [--prune]
 *
 * FOLDER contains package-lock.json and node_modules. With --prune all other packages are removed as well,
 * except koffi, which calls the driver of GPUs: npm keeps some packages of left-out workspaces.
 */
import { globSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Relative to the folder of a package. Builds of SQLite for Linux with glibc and for macOS stay. */
const NEVER_LOADED = [
  '{deps,src}/**/*.{c,cc,cpp,h,hpp,patch}',
  'prebuilds/{win32,linuxmusl}-*',
  '**/*.map',
  '**/{README,CHANGELOG,HISTORY,CONTRIBUTING,SECURITY}*.md',
]
const KOFFI = /^node_modules\/(koffi|@koromix\/.*)$/

interface Lock {
  readonly packages: Readonly<Record<string, { readonly inBundle?: boolean }>>
}

const [folder, mode] = process.argv.slice(2)
if (folder === undefined) throw new Error('usage: node tools/package/strip-packages.ts FOLDER [--prune]')
const { packages } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as Lock
const carried = Object.keys(packages).filter((path) => packages[path]?.inBundle === true)
if (carried.length === 0) throw new Error('package-lock.json names no bundled package')
for (const path of carried)
  for (const file of globSync(NEVER_LOADED, { cwd: join(folder, path) }))
    rmSync(join(folder, path, file), { force: true })
if (mode === '--prune')
  for (const path of globSync('node_modules/{[!@]*,@*/*}', { cwd: folder }))
    if (!carried.includes(path) && !KOFFI.test(path)) rmSync(join(folder, path), { recursive: true })
