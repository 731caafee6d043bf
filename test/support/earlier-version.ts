/** The sources of an earlier commit in a temporary folder, which run with the packages installed here. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
const MAX_ARCHIVE_BYTES = 256 * 1024 * 1024

/** The commit before the one that added a file; null: the history of this copy does not reach it. */
export function commitBefore(file: string): string | null {
  try {
    const [added] = git('log', '--diff-filter=A', '--format=%H', '--', file).toString().split('\n')
    return git('rev-parse', '--verify', '--quiet', `${added ?? ''}^`)
      .toString()
      .trim()
  } catch {
    process.stderr.write(`skipped: the history of this copy does not reach the commit before ${file}\n`)
    return null
  }
}

export interface EarlierVersion {
  readonly root: string
  remove(): void
}

export function checkOut(commit: string): EarlierVersion {
  const root = mkdtempSync(join(tmpdir(), 'headroom-earlier-'))
  execFileSync('tar', ['-x', '-C', root], { input: git('archive', '--format=tar', commit) })
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) }
}

function git(...args: readonly string[]): Buffer {
  const options = { cwd: ROOT, maxBuffer: MAX_ARCHIVE_BYTES } as const
  return execFileSync('git', args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] })
}
