/** Changes single identities in a configuration of `headroom nats config`; all others stay as they are. */
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { UsageError } from '../../services/exit-codes.ts'
import { writeOutput } from '../../services/output-file.ts'
import { CONFIG_HEADER, ENROLLED, userText, type BrokerUser } from './nats-config-text.ts'
import { errorText } from '../../protocol/error-text.ts'

/** The name, the block with its comment, and the public key. */
const USER = /^ {4}# (\S+)\n {4}\{\n {6}nkey: (U[A-Z2-7]{55})\n(?: {6}.*\n)* {4}\}.*\n/gm
const END_OF_USERS = '  ]\n}\n'
const LOCKED_WITHIN_MS = 10_000

interface ConfiguredUser {
  readonly name: string
  readonly publicKey: string
  readonly block: string
}

/** @throws UsageError if the file cannot be read or was not made by `headroom nats config` */
export function readBrokerConfig(out: string): string {
  let text: string
  try {
    text = readFileSync(out, 'utf8')
  } catch (error) {
    throw new UsageError(`--out ${out}: ${errorText(error)}`, {
      cause: error,
    })
  }
  if (text.startsWith(CONFIG_HEADER)) return text
  throw new UsageError(
    `${out} was not created by \`headroom nats config\`. Change its keys with the tool that created it`,
  )
}

export function usersIn(text: string): readonly ConfiguredUser[] {
  return [...text.matchAll(USER)].map(([block, name = '', publicKey = '']) => ({ name, publicKey, block }))
}

/** Servers that made their own key: `headroom nats config` has no seed of theirs. */
export function enrolledIn(text: string): readonly ConfiguredUser[] {
  return usersIn(text).filter(({ block }) => block.endsWith(`${ENROLLED}\n`))
}

/**
 * Replaces identities by name: removes `without`, then appends `users`. Two commands that change one file
 * take turns.
 */
export async function changeUsers(
  out: string,
  without: readonly string[],
  users: readonly BrokerUser[],
): Promise<void> {
  const lock = `${out}.lock`
  await takeLock(lock)
  try {
    const text = readBrokerConfig(out)
    const gone = usersIn(text).filter(({ name }) => without.includes(name))
    const rest = gone.reduce((left, { block }) => left.replace(block, ''), text)
    const end = rest.lastIndexOf(END_OF_USERS)
    if (end < 0)
      throw new UsageError(`${out}: the list of users has an unknown format. Run \`headroom nats config\`.`)
    writeOutput(`--out ${out}`, out, rest.slice(0, end) + users.map(userText).join('') + rest.slice(end))
  } finally {
    rmSync(lock, { force: true })
  }
}

async function takeLock(lock: string): Promise<void> {
  const deadline = performance.now() + LOCKED_WITHIN_MS
  for (;;) {
    try {
      closeSync(openSync(lock, 'wx', 0o600))
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
        throw new UsageError(`--out: ${(error as Error).message}`, { cause: error })
      if (performance.now() > deadline)
        throw new UsageError(
          `${lock} exists: another command is changing the configuration. If none is running, delete the ` +
            'lock file.',
        )
      await wait(50)
    }
  }
}
