/**
 * `headroom node join TOKEN`, on a new GPU server: makes the key of the host, has it accepted with the token
 * of `headroom node enroll`, and writes the variables of the service.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, nkeys, type NatsConnection } from '@nats-io/transport-node'
import { loginOptions } from '../../controller/adapters/nats/login.ts'
import { CommandFailure, EXIT_NO_CONNECTION, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { makeFolder, writeOutput } from '../../services/output-file.ts'
import { brokerTls } from '../../services/settings/nats-settings.ts'
import { enrolmentSubject, parseToken, type EnrolmentToken } from './enrolment-token.ts'

export interface JoinOptions {
  readonly dir: string
  readonly force?: boolean
}

const ANSWER_WITHIN_MS = 60_000
const ACCEPTED_WITHIN_MS = 60_000
const CONFIRMED_WITHIN_MS = 5_000
const LOGIN_WITHIN_MS = 10_000

export async function nodeJoin(text: string, { dir, force = false }: JoinOptions): Promise<number> {
  const token = parseToken(text)
  if (token === null)
    throw new UsageError('this is not a token from `headroom node enroll`: copy the whole command')
  const [keyFile, envFile] = [join(dir, 'node.nk'), join(dir, 'gpu-server.env')]
  if (!force && existsSync(keyFile))
    throw new UsageError(`${keyFile} exists: this host already has a key. Use --force to replace it.`)
  makeFolder('--dir', dir, 0o755)
  const key = nkeys.createUser()
  writeOutput('--dir', keyFile, `${new TextDecoder().decode(key.getSeed())}\n`, 0o600)
  await accept(token, key.getPublicKey(), () => whenAccepted(token.url, key.getSeed()))
  writeVariables(envFile, variables(token, keyFile))
  process.stdout.write(
    `${token.name} has joined. Start its server: systemctl enable --now headroom-gpu-server\n`,
  )
  return EXIT_OK
}

/** Adds them to a file without them, such as that of the package; other values of the operator stay. */
function writeVariables(file: string, lines: string): void {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  if (text.includes(lines)) return
  if (/^CONTROLLER_NATS_URL=/m.test(text)) {
    process.stderr.write(`${file} already specifies a broker and was not changed. It must contain:\n${lines}`)
    return
  }
  writeOutput('--dir', file, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${lines}`, 0o644)
}

function variables({ url, name, nodeId }: EnrolmentToken, keyFile: string): string {
  return (
    `CONTROLLER_NATS_URL=${url}\nCONTROLLER_NATS_NKEY_FILE=${keyFile}\nNODE_NAME=${name}\n` +
    `NODE_ID=${nodeId}\n`
  )
}

/** Sends the public key, waits until the broker knows it, and confirms that; the token is then void. */
async function accept(token: EnrolmentToken, key: string, known: () => Promise<void>): Promise<void> {
  const broker = await brokerOf(token.url, new TextEncoder().encode(token.seed))
  const ask = async (text: string, timeout: number): Promise<string> =>
    (await broker.request(enrolmentSubject(token.nodeId), text, { timeout })).string()
  try {
    const answer = await ask(key, ANSWER_WITHIN_MS)
    if (answer !== 'accepted') throw new CommandFailure(answer)
    await known()
    // Without it the token ends a little later.
    await ask(`${key} confirmed`, CONFIRMED_WITHIN_MS).catch(() => null)
  } catch (error) {
    if (error instanceof CommandFailure) throw error
    throw new CommandFailure(
      `no response to the token: ${(error as Error).message}. Check that \`headroom node enroll ` +
        `${token.name}\` is still running.`,
      EXIT_NO_CONNECTION,
    )
  } finally {
    await broker.close()
  }
}

async function whenAccepted(url: string, seed: Uint8Array): Promise<void> {
  const deadline = performance.now() + ACCEPTED_WITHIN_MS
  for (;;) {
    try {
      await (await brokerOf(url, seed)).close()
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
      await wait(200)
    }
  }
}

async function brokerOf(url: string, seed: Uint8Array): Promise<NatsConnection> {
  const servers = url.split(',')
  const publicKey = nkeys.fromSeed(seed).getPublicKey()
  try {
    return await connect({
      servers,
      timeout: LOGIN_WITHIN_MS,
      inboxPrefix: `_INBOX_${publicKey}`,
      ...loginOptions(servers, { kind: 'nkey', seed }, brokerTls(process.env, url)),
    })
  } catch (error) {
    throw new CommandFailure(
      `the broker at ${url} rejected the token or cannot be reached: ${(error as Error).message}. A token ` +
        'expires, and can be used only once: run `headroom node enroll` again.',
      EXIT_NO_CONNECTION,
    )
  }
}
