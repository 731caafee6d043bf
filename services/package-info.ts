/** The package of this command: a checkout, or an installed build under `dist/`. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Returns the folder of package.json, as a URL that ends in a slash. */
export function packageRoot(): URL {
  const root = new URL('../', import.meta.url)
  return existsSync(new URL('package.json', root)) ? root : new URL('../../', import.meta.url)
}

export function packageVersion(): string {
  const text = readFileSync(new URL('package.json', packageRoot()), 'utf8')
  const version = (JSON.parse(text) as { version?: unknown }).version
  return typeof version === 'string' ? version : '0.0.0'
}

/** Returns the commit of the build (written by `make build`), or of the checkout; null when unknown. */
export function packageCommit(): string | null {
  const built = textOf(fileURLToPath(new URL('../commit', import.meta.url)))
  return commitIn(built) ?? commitOfCheckout(fileURLToPath(packageRoot()))
}

/** Reads git's files; the checkout may be a linked work tree. */
function commitOfCheckout(root: string): string | null {
  const dotGit = resolve(root, '.git')
  const folder = resolve(root, /^gitdir: (.+)$/m.exec(textOf(dotGit) ?? '')?.[1] ?? '.git')
  const head = textOf(resolve(folder, 'HEAD'))
  const ref = /^ref: (.+)$/m.exec(head ?? '')?.[1]
  if (ref === undefined) return commitIn(head)
  const common = resolve(folder, textOf(resolve(folder, 'commondir'))?.trim() ?? '.')
  const packed = textOf(resolve(common, 'packed-refs'))
  const line = packed?.split('\n').find((each) => each.endsWith(` ${ref}`))
  return commitIn(textOf(resolve(common, ref))) ?? commitIn(line ?? null)
}

function commitIn(text: string | null): string | null {
  return /^[0-9a-f]{40}\b/.exec(text ?? '')?.[0] ?? null
}

function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return null
  }
}
