/**
 * A clean Debian in a folder, entered in namespaces of its own: no engine and no image is needed.
 * HEADROOM_DEBIAN_ROOT names a folder with Debian; without it debootstrap makes one, once.
 */
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const CACHED_ROOT = join(import.meta.dirname, '../../node_modules/.cache/debian-root')
const run = promisify(execFile)

export const NAMESPACES = ['--mount', '--pid', '--fork', '--kill-child']
/**
 * Arguments: the root folder, then the command. The variable CHROOT holds options of chroot. The shell stays
 * the first process, as root: a change of user would take away its signal of death.
 */
export const ENTER = 'mount -t proc proc "$0/proc" && chroot $CHROOT "$0" "$@"; exit $?'

/** Returns why a clean Debian is not possible here, or null. The host needs these programs too. */
export function whyNoDebian(programs: readonly string[]): string | null {
  if (process.getuid?.() !== 0) return 'it needs root'
  const missing = ['dpkg-deb', 'unshare', ...programs].find((name) => !isThere(name))
  if (missing !== undefined) return `${missing} is not installed`
  if (process.env['HEADROOM_DEBIAN_ROOT'] !== undefined || existsSync(join(CACHED_ROOT, 'etc'))) return null
  return isThere('debootstrap') ? null : 'debootstrap is not installed'
}

export async function copyDebian(to: string): Promise<void> {
  const base = process.env['HEADROOM_DEBIAN_ROOT'] ?? CACHED_ROOT
  if (!existsSync(join(base, 'etc'))) {
    // An interrupted run leaves no folder that looks complete.
    await run('debootstrap', ['--variant=minbase', 'bookworm', `${base}.new`])
    await run('mv', [`${base}.new`, base])
  }
  await run('cp', ['-a', base, to])
}

function isThere(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`])
    return true
  } catch {
    return false
  }
}
