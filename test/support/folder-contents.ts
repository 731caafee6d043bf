/** Contents of a folder, and waits for new files. */
import { createHash } from 'node:crypto'
import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const LOOK_EVERY_MS = 20
const FOUND_WITHIN_MS = 100_000

/** SHA-256 of every file below it by path, except for the omitted names. */
export function digestsIn(folder: string, leftOut: readonly string[] = []): Readonly<Record<string, string>> {
  const paths = globSync('**/*', { cwd: folder }).filter((path) => statSync(join(folder, path)).isFile())
  const kept = paths
    .filter((path) => !leftOut.some((name) => path.endsWith(name)))
    .sort((a, b) => (a < b ? -1 : 1))
  return Object.fromEntries(
    kept.map((path) => [
      path,
      createHash('sha256')
        .update(readFileSync(join(folder, path)))
        .digest('hex'),
    ]),
  )
}

/** Resolves as soon as this number of paths matches. */
export async function untilThere(folder: string, pattern: string, count: number): Promise<void> {
  const deadline = performance.now() + FOUND_WITHIN_MS
  while (globSync(pattern, { cwd: folder }).length < count) {
    if (performance.now() > deadline) throw new Error(`not ${count} of ${pattern} in ${folder}`)
    await wait(LOOK_EVERY_MS)
  }
}
