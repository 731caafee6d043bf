/**
 * `headroom node enroll NAME` and `node unenroll NAME`, on the broker's host: adds or removes one GPU server
 * in the broker's configuration. No other server is named, and the broker keeps all other connections.
 */
import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, nkeys, type Msg, type NatsConnection } from '@nats-io/transport-node'
import { loginOptions } from '../../controller/adapters/nats/login.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { CommandFailure, EXIT_NO_CONNECTION, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { brokerTls } from '../../services/settings/nats-settings.ts'
import { untilSignal } from '../../services/until-signal.ts'
import { changeUsers, readBrokerConfig, usersIn } from './broker-config-file.ts'
import { enrolmentSubject, tokenText } from './enrolment-token.ts'
import type { BrokerUser } from './nats-config-text.ts'

export interface EnrollOptions {
  readonly out: string
  readonly reload: string
  /** Address of the broker as the new host reaches it; default: the name of this host. */
  readonly nats?: string
  readonly validFor: DurationMs
}

const CONNECT_WITHIN_MS = 60_000
/** A broker that reloads its configuration may leave a login without an answer. */
const LOGIN_WITHIN_MS = 10_000
/** The host's confirmation follows its request at once. */
const CONFIRM_WITHIN_MS = 30_000
const PUBLIC_KEY = /^U[A-Z2-7]{55}$/

type Ending = 'enrolled' | 'expired' | 'stopped'

/** Waits until the host has joined, the token has expired, or a signal arrives. */
export async function nodeEnroll(name: string, options: EnrollOptions): Promise<number> {
  const nodeId = nodeIdFromName(name)
  const text = readBrokerConfig(options.out)
  if (usersIn(text).some((user) => user.name === `node-${name}`))
    throw new UsageError(
      `${options.out} already has a key for ${name}. Remove it first: headroom node unenroll ${name} ` +
        `-o ${options.out}`,
    )
  const [joining, enrolling] = [nkeys.createUser(), nkeys.createUser()]
  const temporary: readonly BrokerUser[] = [
    { name: `joining-${name}`, identity: { kind: 'joining', nodeId }, publicKey: joining.getPublicKey() },
    {
      name: `enrolling-${name}`,
      identity: { kind: 'enrolling', nodeId },
      publicKey: enrolling.getPublicKey(),
    },
  ]
  const names = temporary.map((user) => user.name)
  await changeUsers(options.out, names, temporary)
  try {
    reload(options.reload)
    const broker = await connected(brokerUrl(text, '127.0.0.1'), enrolling.getSeed())
    const seed = new TextDecoder().decode(joining.getSeed())
    const token = tokenText({ url: options.nats ?? brokerUrl(text, hostname()), name, nodeId, seed })
    process.stdout.write(`Run this command on ${name} as root:\n\n  headroom node join ${token}\n\n`)
    process.stderr.write('Waiting for the host. Press Ctrl-C to withdraw the token.\n')
    const ending = await joined(broker, name, nodeId, options)
    await broker.close()
    return report(name, nodeId, ending)
  } finally {
    await changeUsers(options.out, names, [])
    reload(options.reload)
  }
}

export async function nodeUnenroll(
  name: string,
  { out, reload: command }: Pick<EnrollOptions, 'out' | 'reload'>,
): Promise<number> {
  const party = `node-${name}`
  if (usersIn(readBrokerConfig(out)).every((user) => user.name !== party))
    throw new UsageError(`${out} has no key for ${name}`)
  await changeUsers(out, [party], [])
  reload(command)
  process.stdout.write(
    `${name} is disconnected, and its key is now rejected. Tasks on this host continue until their ` +
      `leases end. When no tasks are left, remove the node: headroom node remove ${name}\n`,
  )
  return EXIT_OK
}

/** The first valid key wins; the same host may repeat its request, another one is refused. */
async function joined(
  broker: NatsConnection,
  name: string,
  nodeId: string,
  { out, reload: command, validFor }: EnrollOptions,
): Promise<Ending> {
  const done = Promise.withResolvers<Ending>()
  let accepted: string | null = null
  const add = async (key: string): Promise<void> => {
    const user = { name: `node-${name}`, identity: { kind: 'node', nodeId }, publicKey: key } as const
    await changeUsers(out, [user.name], [{ ...user, isEnrolled: true }])
    reload(command)
    setTimeout(() => done.resolve('enrolled'), CONFIRM_WITHIN_MS).unref()
  }
  const answer = async (message: Msg): Promise<void> => {
    const [key = '', step] = message.string().slice(0, 100).split(' ')
    const isFirst = accepted === null && PUBLIC_KEY.test(key) && isPublicKey(key)
    if (isFirst) accepted = key
    // Answered before the reload, which removes the permission to answer this request.
    message.respond(accepted === key ? 'accepted' : 'refused: the token was used by another host')
    await broker.flush()
    if (isFirst) await add(key)
    else if (accepted === key && step === 'confirmed') done.resolve('enrolled')
  }
  broker.subscribe(enrolmentSubject(nodeId), {
    callback: (error, message) => {
      if (error === null) answer(message).catch(done.reject)
    },
  })
  const timer = setTimeout(() => done.resolve('expired'), validFor)
  void untilSignal().then(() => done.resolve('stopped'))
  return done.promise.finally(() => clearTimeout(timer))
}

function report(name: string, nodeId: string, ending: Ending): number {
  if (ending === 'expired') throw new CommandFailure(`the token has expired; ${name} was not enrolled`)
  if (ending === 'stopped') throw new CommandFailure(`the token was withdrawn; ${name} was not enrolled`)
  process.stdout.write(`${name} is enrolled (NODE_ID ${nodeId}).\n`)
  return EXIT_OK
}

function isPublicKey(key: string): boolean {
  try {
    nkeys.fromPublic(key)
    return true
  } catch {
    return false
  }
}

function reload(command: string): void {
  const { status, stderr } = spawnSync('/bin/sh', ['-c', command], { encoding: 'utf8' })
  if (status !== 0)
    throw new CommandFailure(
      `the broker was not reloaded: \`${command}\` ` +
        `${status === null ? 'was ended by a signal' : `failed with exit code ${status}`}. ` +
        `${stderr.trim() === '' ? '' : `${stderr.trim()} `}Use --reload to specify another command.`,
    )
}

/** The address of the configuration; `own` names this host where the broker listens on all addresses. */
function brokerUrl(text: string, own: string): string {
  const [, host = '', port = '4222'] = /^listen: "(.*):(\d+)"$/m.exec(text) ?? []
  const isAny = host === '' || host === '0.0.0.0' || host === '[::]'
  const scheme = /^tls \{$/m.test(text) ? 'tls' : 'nats'
  return `${scheme}://${isAny ? own : host}:${port}`
}

/** The broker may take a moment to reload, and refuses the identity until then. */
async function connected(url: string, seed: Uint8Array): Promise<NatsConnection> {
  const deadline = performance.now() + CONNECT_WITHIN_MS
  const options = loginOptions([url], { kind: 'nkey', seed }, brokerTls(process.env, url))
  for (;;) {
    try {
      return await connect({ servers: url, ...options, timeout: LOGIN_WITHIN_MS, maxReconnectAttempts: -1 })
    } catch (error) {
      if (performance.now() > deadline)
        throw new CommandFailure(
          `the broker at ${url} rejected the identity of this command: ${(error as Error).message}. ` +
            'Check that the broker uses this configuration; --reload specifies the command that reloads it.',
          EXIT_NO_CONNECTION,
        )
      await wait(200)
    }
  }
}
