/**
 * Logins for private registries, in the format of docker's config.json (`auths`). They go to the engine's
 * socket with a pull, and nowhere else; no message names any of their content.
 */
import { readFileSync, statSync } from 'node:fs'
import { fullNameOf } from '../../protocol/image-reference.ts'

/** The file cannot be used; the message names it, and nothing of its content. */
export class CredentialsFault extends Error {
  override readonly name = 'CredentialsFault'
}

const MAX_FILE_BYTES = 1024 * 1024
const OPEN_TO_OTHERS = 0o077

export interface Login {
  readonly username: string
  readonly password: string
}

/**
 * Returns the value of `X-Registry-Auth` for the image; null: the file has no login for it.
 * @throws CredentialsFault
 */
export function loginFor(image: string, path: string): string | null {
  const found = findLogin(image, path)
  if (found === null) return null
  const [serveraddress, login] = found
  const header = Buffer.from(JSON.stringify({ ...login, serveraddress })).toString('base64')
  // Docker reads the alphabet of URLs with padding, which Node's base64url omits, and ignores anything else.
  return header.replaceAll('+', '-').replaceAll('/', '_')
}

/**
 * Null: the file has no login for the image.
 * @throws CredentialsFault
 */
export function findLogin(image: string, path: string): readonly [server: string, login: Login] | null {
  const name = fullNameOf(image)
  let best: readonly [server: string, login: Login] | null = null
  for (const [server, login] of readLogins(path)) {
    const isFor = name.startsWith(`${server}/`)
    if (isFor && server.length > (best?.[0].length ?? -1)) best = [server, login]
  }
  return best
}

/**
 * Reads all logins, by registry or by a registry and the beginning of a path.
 * @throws CredentialsFault
 */
export function readLogins(path: string): ReadonlyMap<string, Login> {
  const auths = fieldsOf(fieldsOf(contentOf(path))['auths'])
  const logins = new Map<string, Login>()
  for (const [server, entry] of Object.entries(auths)) {
    const { auth } = fieldsOf(entry)
    if (typeof auth !== 'string') throw unusable(path, 'an entry of auths has no auth (helpers are not run)')
    const text = Buffer.from(auth, 'base64').toString('utf8')
    const colon = text.indexOf(':')
    if (colon < 1) throw unusable(path, 'an auth is not the base64 encoding of USER:PASSWORD')
    logins.set(serverOf(server), { username: text.slice(0, colon), password: text.slice(colon + 1) })
  }
  if (logins.size === 0) throw unusable(path, 'it has no auths')
  return logins
}

function contentOf(path: string): unknown {
  let text: string
  try {
    const { mode, size, uid } = statSync(path)
    if ((mode & OPEN_TO_OTHERS) !== 0) throw unusable(path, 'other users can read it: chmod 600')
    if (uid !== 0 && uid !== process.getuid?.()) throw unusable(path, `it belongs to user ${uid}`)
    if (size > MAX_FILE_BYTES) throw unusable(path, 'it is larger than 1 MiB')
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (error instanceof CredentialsFault) throw error
    throw unusable(path, error instanceof Error && 'code' in error ? String(error.code) : 'unreadable')
  }
  try {
    return JSON.parse(text)
  } catch {
    throw unusable(path, 'it is not JSON')
  }
}

/** Docker writes its own registry as an address of its first version. */
function serverOf(key: string): string {
  const server = key.replace(/^https?:\/\//, '').replace(/\/(v1|v2)?\/?$/, '')
  return server === 'index.docker.io' || server === 'registry-1.docker.io' ? 'docker.io' : server
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function unusable(path: string, why: string): CredentialsFault {
  return new CredentialsFault(`registry credentials ${path}: ${why}`)
}
