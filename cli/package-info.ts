/** The package this command runs from: a checkout, or an installed build under `dist/`. */
import { existsSync, readFileSync } from 'node:fs'

/** The folder of package.json, as a URL that ends in a slash. */
export function packageRoot(): URL {
  const beside = new URL('../', import.meta.url)
  return existsSync(new URL('package.json', beside)) ? beside : new URL('../../', import.meta.url)
}

export function packageVersion(): string {
  const text = readFileSync(new URL('package.json', packageRoot()), 'utf8')
  const version = (JSON.parse(text) as { version?: unknown }).version
  return typeof version === 'string' ? version : '0.0.0'
}
