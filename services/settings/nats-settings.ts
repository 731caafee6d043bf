/** Address of the broker and the login there, read from the environment once, at the start. */
import { readFileSync } from 'node:fs'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { nkeys } from '@nats-io/transport-node'
import type { NatsAuth, NatsTls } from '../../controller/adapters/nats-bus.ts'
import { ENVIRONMENT, type EnvironmentVariable } from './env-table.ts'
import { UsageError } from '../exit-codes.ts'
import { SettingsError } from './settings.ts'

export interface NatsSettings {
  /** Without user and password. */
  readonly urls: readonly string[]
  readonly auth: NatsAuth
  /**
   * Not null when a URL begins with `tls:` or any TLS variable is set: a broker without TLS is then refused.
   */
  readonly tls: NatsTls | null
  readonly inboxPrefix: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** Files may be long; a seed or a certificate chain is not. */
const MAX_FILE_BYTES = 1024 * 1024

/**
 * Null when neither CONTROLLER_NATS_URL nor any other broker variable is set. An empty variable counts as
 * unset.
 * @throws SettingsError, one line that names the variable, for values out of range, unusable files and
 * contradictions
 */
export function natsSettings(env: Environment): NatsSettings | null {
  const urls = valueOf(env, ENVIRONMENT.natsUrls)
  if (urls === null) return withoutBroker(env)
  const auth = authOf(env, urls)
  return {
    urls: urls.map(withoutLogin),
    auth,
    tls: tlsOf(env, urls),
    inboxPrefix: valueOf(env, ENVIRONMENT.natsInboxPrefix) ?? inboxOf(auth),
  }
}

/**
 * Returns the broker from a command's option, else from the environment; null: neither. Throws SettingsError,
 * and UsageError that names the option.
 */
export function natsSettingsAt(option: string, url: string | undefined): NatsSettings | null {
  if (url === undefined) return natsSettings(process.env)
  const { name } = ENVIRONMENT.natsUrls
  try {
    return natsSettings({ ...process.env, [name]: url })
  } catch (error) {
    if (!(error instanceof SettingsError) || error.variable !== name) throw error
    throw new UsageError(error.message.replace(name, option), { cause: error })
  }
}

/** Certificates from the environment for a broker that is named otherwise. Throws SettingsError. */
export function brokerTls(env: Environment, url: string): NatsTls | null {
  return tlsOf(env, url.split(','))
}

/** A login to a broker implies a broker: a simulated fleet in its place would look like the real cluster. */
function withoutBroker(env: Environment): null {
  const { natsUrls, natsUser, natsPassword, natsToken, natsNkeyFile, natsTlsCa, natsTlsCert, natsTlsKey } =
    ENVIRONMENT
  const given = [natsUser, natsPassword, natsToken, natsNkeyFile, natsTlsCa, natsTlsCert, natsTlsKey].find(
    ({ name }) => env[name],
  )
  if (given === undefined) return null
  throw faultOf(env, natsUrls, `set when ${given.name} is set: ${natsUrls.range}`)
}

function authOf(env: Environment, urls: readonly string[]): NatsAuth {
  const inUrl = loginInUrls(env, urls)
  const user = valueOf(env, ENVIRONMENT.natsUser)
  const password = valueOf(env, ENVIRONMENT.natsPassword)
  const token = valueOf(env, ENVIRONMENT.natsToken)
  const nkeyFile = valueOf(env, ENVIRONMENT.natsNkeyFile)
  if (password !== null && user === null) throw faultOf(env, ENVIRONMENT.natsPassword)
  if (user !== null && password === null)
    throw new SettingsError(ENVIRONMENT.natsUser.name, user, 'set together with CONTROLLER_NATS_PASSWORD')
  const ways = [inUrl, user, token, nkeyFile].filter((way) => way !== null).length
  if (ways > 1) {
    const second = [ENVIRONMENT.natsNkeyFile, ENVIRONMENT.natsToken, ENVIRONMENT.natsUser].find(
      ({ name }) => env[name],
    )
    throw faultOf(
      env,
      second ?? ENVIRONMENT.natsUrls,
      'the only login method: use one of URL, user, token or nkey',
    )
  }
  if (inUrl !== null) return inUrl
  if (user !== null && password !== null) return { kind: 'password', user, password }
  if (token !== null) return { kind: 'token', token }
  return nkeyFile === null ? { kind: 'none' } : { kind: 'nkey', seed: seedIn(nkeyFile) }
}

/** All URLs with a login have the same login. */
function loginInUrls(env: Environment, urls: readonly string[]): NatsAuth | null {
  const logins = new Set(
    urls.map((url) => new URL(url)).map(({ username, password }) => JSON.stringify([username, password])),
  )
  logins.delete('["",""]')
  const [login] = logins
  if (login === undefined) return null
  const [user, password] = (JSON.parse(login) as [string, string]).map(decodeURIComponent) as [string, string]
  if (logins.size > 1)
    throw faultOf(env, ENVIRONMENT.natsUrls, 'URLs with the same user and password, or without')
  return password === '' ? { kind: 'token', token: user } : { kind: 'password', user, password }
}

function seedIn(path: string): Uint8Array {
  const seed = seedOf(contentsOf(ENVIRONMENT.natsNkeyFile, path))
  if (seed === null)
    throw new SettingsError(ENVIRONMENT.natsNkeyFile.name, path, ENVIRONMENT.natsNkeyFile.range)
  return seed
}

/** Returns the seed of an nkey user in the text of its file, or null. */
export function seedOf(text: string): Uint8Array | null {
  const line = /^SU[A-Z2-7]{56}$/m.exec(text)?.[0]
  if (line === undefined) return null
  const seed = new TextEncoder().encode(line)
  try {
    nkeys.fromSeed(seed)
    return seed
  } catch {
    // Invalid checksum.
    return null
  }
}

function tlsOf(env: Environment, urls: readonly string[]): NatsTls | null {
  const ca = pemOf(env, ENVIRONMENT.natsTlsCa, (pem) => new X509Certificate(pem))
  const cert = pemOf(env, ENVIRONMENT.natsTlsCert, (pem) => new X509Certificate(pem))
  const key = pemOf(env, ENVIRONMENT.natsTlsKey, (pem) => createPrivateKey(pem))
  if (cert !== null && key === null) throw faultOf(env, ENVIRONMENT.natsTlsCert)
  if (key !== null && cert === null) throw faultOf(env, ENVIRONMENT.natsTlsKey)
  return ca !== null || cert !== null || urls.some((url) => url.startsWith('tls:')) ? { ca, cert, key } : null
}

function pemOf(
  env: Environment,
  variable: EnvironmentVariable<string>,
  parse: (pem: string) => unknown,
): string | null {
  const path = valueOf(env, variable)
  if (path === null) return null
  const pem = contentsOf(variable, path)
  try {
    parse(pem)
  } catch (error) {
    throw new SettingsError(variable.name, path, variable.range, { cause: error })
  }
  return pem
}

function contentsOf(variable: EnvironmentVariable<string>, path: string): string {
  try {
    const bytes = readFileSync(path)
    if (bytes.byteLength > MAX_FILE_BYTES) throw new Error(`more than ${MAX_FILE_BYTES} bytes`)
    return bytes.toString('utf8')
  } catch (error) {
    throw new SettingsError(variable.name, path, variable.range, { cause: error })
  }
}

/** Our broker configuration allows each user its own inbox. */
function inboxOf(auth: NatsAuth): string {
  const user =
    auth.kind === 'password'
      ? auth.user
      : auth.kind === 'nkey'
        ? nkeys.fromSeed(auth.seed).getPublicKey()
        : null
  return user !== null && /^[\w-]+$/.test(user) ? `_INBOX_${user}` : '_INBOX'
}

function withoutLogin(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}

function valueOf<T>(env: Environment, variable: EnvironmentVariable<T>): T | null {
  const text = env[variable.name]
  if (text === undefined || text === '') return null
  const value = variable.read(text)
  if (value === undefined) throw faultOf(env, variable)
  return value
}

function faultOf(
  env: Environment,
  variable: EnvironmentVariable<unknown>,
  range: string = variable.range,
): SettingsError {
  return new SettingsError(
    variable.name,
    variable.isSecret === true ? '…' : (env[variable.name] ?? ''),
    range,
  )
}
