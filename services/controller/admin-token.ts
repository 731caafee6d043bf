/**
 * The first admin token of a container: a secret in a file, named by CONTROLLER_ADMIN_TOKEN_FILE and read
 * once, at the start.
 */
import {
  hashOf,
  SECRET_MAX_CHARACTERS,
  SECRET_MIN_CHARACTERS,
} from '../../controller/api/auth/token-secrets.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { readSecretFile } from '../settings/secret-file.ts'
import { SettingsError } from '../settings/settings.ts'

export interface AdminToken {
  readonly hash: string
  /** A problem with the file that does not prevent its use; null: none. */
  readonly warning: string | null
}

const { name: VARIABLE, range: RANGE } = ENVIRONMENT.adminTokenFile
const READABLE_BY_ALL = 0o004

/**
 * Null when the variable is not set.
 * @throws SettingsError, one line that names the variable without the content of the file, when the file is
 * unreadable or holds no valid secret
 */
export function adminToken(env: Readonly<Record<string, string | undefined>>): AdminToken | null {
  const path = env[VARIABLE]
  if (path === undefined || path === '') return null
  const { text, mode } = readSecretFile(path, ENVIRONMENT.adminTokenFile)
  const secret = text.trim()
  const why = whyNoSecret(secret)
  if (why !== null) throw new SettingsError(VARIABLE, path, `${RANGE} (${why})`)
  const isOpen = (mode & READABLE_BY_ALL) !== 0
  const shown = (mode & 0o777).toString(8).padStart(4, '0')
  return {
    hash: hashOf(secret),
    warning: isOpen ? `every user of this host may read ${path} (mode ${shown}): chmod o-r ${path}` : null,
  }
}

function whyNoSecret(secret: string): string | null {
  if (!/^[\x21-\x7e]*$/.test(secret)) return 'it contains spaces, several lines, or characters outside ASCII'
  if (secret.length < SECRET_MIN_CHARACTERS) return `it has ${secret.length} characters`
  return secret.length > SECRET_MAX_CHARACTERS ? 'it is longer' : null
}
