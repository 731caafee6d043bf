/** Translates faults of PostgreSQL and of the connection into one line: store, what is wrong, what to do. */
import { StoreFault } from '../../ports/store.ts'
import { oneLine } from '../sql/one-line.ts'
import { errorText } from '../../../protocol/error-text.ts'

/** Raised by the functions of the schema (commit-function.ts). */
export const FENCED = 'HR001'
const BROKEN_CHAIN = 'HR002'

/** @returns a StoreFault unchanged; any other fault translated, with the original as its cause */
export function faultOf(error: unknown, store: string): StoreFault {
  if (error instanceof StoreFault) return error
  const [code, message] = [codeOf(error), messageOf(error)]
  return new StoreFault(oneLine(`${store} ${describe(code, message)}`), { cause: error })
}

/** The server may answer later without any change. */
export function isPassing(error: unknown): boolean {
  const code = codeOf(error)
  return (
    PASSING.has(code) ||
    code.startsWith('08') ||
    /timeout expired|Query read timeout|Connection terminated|not queryable|no primary/.test(messageOf(error))
  )
}

const PASSING = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EPIPE'],
  ...['ENOTFOUND', 'EAI_AGAIN', 'ENOENT'],
  // Starting up, shutting down, crashed; too many connections.
  ...['57P01', '57P02', '57P03', '53300'],
  // Cancelled by its time limit.
  '57014',
])

const IN_URL = 'in CONTROLLER_STORE_URL'
const UNREACHABLE = 'check that PostgreSQL runs there and that the network lets this host in'

function describe(code: string, message: string): string {
  const because = `(${code === '' ? '' : `${code}: `}${message})`
  switch (code) {
    case '28P01':
    case '28000':
      return `refuses this user ${because}: check user and password in CONTROLLER_STORE_URL, and pg_hba.conf`
    case '3D000':
      return `does not exist ${because}: create it, owned by the controller's user (createdb)`
    case '42501':
      return (
        `denies permissions that the controller needs ${because}: make its user the owner of the database ` +
        '(alter database … owner to …)'
      )
    case '53100':
      return `has a full disk ${because}: free some space there, then start again`
    case '53300':
      return `has no free connection ${because}: raise max_connections, or lower pool_size ${IN_URL}`
    case '57014':
      return `did not finish a statement in time ${because}: check its disk and its load`
    case '08P01':
      return `refuses this kind of connection ${because}: use PostgreSQL, or PgBouncer in session mode`
    case '25006':
      return `is read-only ${because}: name the primary in CONTROLLER_STORE_URL`
    case BROKEN_CHAIN:
      return `has events that this controller did not write ${because}: only the controller may write there`
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `has an unknown host ${because}: check its name in CONTROLLER_STORE_URL`
  }
  if (/SSL|certificate|self.signed|TLS|altnames/i.test(message))
    return `refuses a verified TLS connection ${because}: check sslmode and sslrootcert ${IN_URL}`
  if (PASSING.has(code) || code.startsWith('08')) return `cannot be reached ${because}: ${UNREACHABLE}`
  if (/password/.test(message)) return `requires a password ${because}: add it to CONTROLLER_STORE_URL`
  if (/timeout/i.test(message)) return `did not answer in time ${because}: ${UNREACHABLE}`
  return `failed ${because}`
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}

/** Node reports the addresses of one host together, with no message of their own. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map((each) => messageOf(each)).join(', ')
  return errorText(error)
}
