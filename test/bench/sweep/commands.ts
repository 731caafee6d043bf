/**
 * The `headroom` command as a user runs it, in wall time, because the user's waiting time is what counts for
 * a sweep.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const COMMAND = ['--import', './cli/require-node.mjs', 'cli/main.ts']

/** Wall seconds, including the start of the process. Throws with the end of its output when it fails. */
export function timedHeadroom(args: readonly string[]): { readonly wallS: number; readonly stdout: string } {
  const startedAt = performance.now()
  const { status, stdout, stderr } = spawnSync(process.execPath, [...COMMAND, ...args], {
    cwd: ROOT,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (status !== 0)
    throw new Error(
      `headroom ${args.join(' ')}: ${stderr.trim().split('\n').at(-1) ?? `exit code ${status}`}`,
    )
  return { wallS: (performance.now() - startedAt) / 1000, stdout }
}

/** All at once: wall seconds until the last one has ended. Throws when one fails. */
export async function timedTogether(commands: ReadonlyArray<readonly string[]>): Promise<number> {
  const startedAt = performance.now()
  const children = commands.map((args) =>
    spawn(process.execPath, [...COMMAND, ...args], { cwd: ROOT, stdio: 'ignore' }),
  )
  const codes = await Promise.all(
    children.map(async (child) => (await once(child, 'exit'))[0] as number | null),
  )
  if (codes.some((code) => code !== 0))
    throw new Error(`headroom ${commands[0]?.join(' ')}: exit codes ${codes.join(', ')}`)
  return (performance.now() - startedAt) / 1000
}
