/** The `headroom` command as a user runs it, timed on the wall: a sweep is about how long somebody waits. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** Wall seconds, start of the process included. Throws with its last words when it fails. */
export function timedHeadroom(args: readonly string[]): { readonly wallS: number; readonly stdout: string } {
  const startedAt = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', './cli/require-node.mjs', 'cli/main.ts', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (status !== 0) throw new Error(`headroom ${args.join(' ')}: ${stderr.trim().split('\n').at(-1) ?? `exit code ${status}`}`)
  return { wallS: (performance.now() - startedAt) / 1000, stdout }
}
