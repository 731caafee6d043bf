/**
 * Loaded before any other module: `node --import ./cli/require-node.mjs cli/main.ts`.
 * 1. An older Node gets one clear line. It cannot read TypeScript, and better-sqlite3 crashes there without a
 *    message.
 * 2. Compiled modules are cached for the next start, in a folder that only this user can write to: other
 *    users could prepare the default folder, below the system's temporary folder. Must be plain JavaScript
 *    that Node 14 can read.
 */
import module from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

const WANTED = [22, 18]

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < WANTED[0] || (major === WANTED[0] && minor < WANTED[1])) {
  console.error(
    `Headroom needs Node ${WANTED.join('.')} or newer, but this is ${process.versions.node}. ` +
      'Run `make up`, which brings its own Node, or install a newer one.',
  )
  process.exit(1)
}

// A cached function reports its coverage less precisely, so a measured run compiles everything again.
if (!process.env.NODE_V8_COVERAGE) module.enableCompileCache(compileCacheFolder())

function compileCacheFolder() {
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  return process.env.NODE_COMPILE_CACHE || join(caches, 'headroom', 'node-compile-cache')
}
