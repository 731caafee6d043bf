/** `headroom login URL`: checks a token and stores it with the address as the current context. */
import {
  createClient,
  DEFAULT_URL,
  type HeadroomClient,
  type Session,
} from '../../clients/typescript/client.ts'
import { firstSet, URL_VARIABLES } from '../../clients/typescript/client-variables.ts'
import { CommandFailure, EXIT_DENIED, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { visible } from '../output/terminal-text.ts'
import { storeContext } from './contexts.ts'
import { readSecret } from './read-secret.ts'

const TOKEN = /^[\x21-\x7e]{1,512}$/

export async function login(
  given: string | undefined,
  { name }: { readonly name?: string },
): Promise<number> {
  const url = given ?? firstSet(URL_VARIABLES, process.env)?.text ?? DEFAULT_URL
  const anonymous = clientOf(url, null)
  const { is_open: isOpen, caller: known } = await anonymous.session()
  // A Unix socket knows its callers.
  const token = isOpen || known !== null ? null : await askedToken(anonymous.url)
  const client = clientOf(url, token)
  const { caller } = await client.session()
  if (caller === null) throw new CommandFailure('The controller rejected this token.', EXIT_DENIED)
  const context = name ?? (new URL(client.url).host || 'local')
  storeContext(context, { url: client.url, ...(token === null ? {} : { token }) })
  process.stdout.write(
    `${visible(doneOf(caller))} The current context is now ${visible(context)} (${visible(client.url)}).\n`,
  )
  warnOfVariables()
  return EXIT_OK
}

function clientOf(url: string, token: string | null): HeadroomClient {
  try {
    return createClient({ url, token, attempts: 1 })
  } catch (error) {
    throw error instanceof TypeError ? new UsageError(error.message, { cause: error }) : error
  }
}

async function askedToken(url: string): Promise<string> {
  const token = (await readSecret(`Token for ${visible(url)}: `)).trim()
  if (TOKEN.test(token)) return token
  throw new UsageError(
    token === ''
      ? 'no token on stdin: pipe a token, or run the command in a terminal'
      : 'the token must be one line of printable ASCII',
  )
}

function doneOf({ name, role }: NonNullable<Session['caller']>): string {
  return name === null ? 'No authentication required.' : `Authenticated as ${name}, role ${role}.`
}

function warnOfVariables(): void {
  const variable = firstSet(URL_VARIABLES, process.env)
  if (variable !== null)
    process.stderr.write(`headroom: ${variable.name} is set and takes precedence over the context\n`)
}
