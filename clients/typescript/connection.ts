/**
 * Finds the address of the controller and the token of the caller. The Python client and the command line
 * share the rule and the settings file, `$XDG_CONFIG_HOME/headroom/client.json`, which `headroom login`
 * writes.
 */
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { firstSet, URL_VARIABLES, type Environment } from './client-variables.ts'
import { SettingsFault } from './errors.ts'
import { localSocket } from './local-socket.ts'
import { DEFAULT_URL } from './transport.ts'

export interface Context {
  readonly url?: string
  readonly token?: string
}

export interface ClientSettings {
  readonly current_context?: string
  readonly contexts?: Readonly<Record<string, Context>>
}

export interface Connection {
  /** The address as given. */
  readonly url: string
  /** null: none is sent. */
  readonly token: string | null
  /** Where the address comes from, for messages; null: it was given. */
  readonly source: string | null
}

/**
 * The address is the first of: the given one, HEADROOM_URL, VENDOR_CONTROLLER_URL, the current context, the
 * socket of a server on this host, the default. The token is the given one, HEADROOM_TOKEN, or that of the
 * context that gave the address: the token of a context is never sent to another address.
 * @throws SettingsFault for a settings file that is damaged, or readable by others
 */
export function connectionOf(
  given: { readonly url?: string; readonly token?: string | null },
  env: Environment,
): Connection {
  const tokenOr = (other: string | null): string | null =>
    given.token === undefined ? env['HEADROOM_TOKEN'] || other : given.token
  if (given.url !== undefined) return { url: given.url, token: tokenOr(null), source: null }
  const variable = firstSet(URL_VARIABLES, env)
  if (variable !== null) return { url: variable.text, token: tokenOr(null), source: variable.name }
  const path = settingsPath(env)
  const { name, context } = currentContext(readClientSettings(path), path)
  const socket = context.url === undefined ? localSocket(env) : null
  if (socket !== null)
    return { url: `unix://${pathToFileURL(socket).pathname}`, token: tokenOr(null), source: 'socket' }
  if (context.url === undefined) return { url: DEFAULT_URL, token: tokenOr(null), source: 'default' }
  return {
    url: context.url,
    token: tokenOr(context.token ?? null),
    source: `context ${JSON.stringify(name)}`,
  }
}

export function settingsPath(env: Environment): string {
  const folder = env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config')
  return join(folder, 'headroom', 'client.json')
}

function currentContext(
  { current_context: name, contexts = {} }: ClientSettings,
  path: string,
): { readonly name: string | null; readonly context: Context } {
  if (name === undefined) return { name: null, context: {} }
  const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined
  if (context === undefined)
    throw new SettingsFault(
      `${path}: the current context ${JSON.stringify(name)} does not exist. ` +
        'Run `headroom context use NAME`.',
    )
  return { name, context }
}

/** A missing file is empty settings. */
export function readClientSettings(path: string): ClientSettings {
  const file = fileText(path)
  if (file === null) return {}
  const settings = checked(file.text, path)
  const hasToken = Object.values(settings.contexts ?? {}).some(({ token }) => token !== undefined)
  if (hasToken && file.isReadableByOthers)
    throw new SettingsFault(`${path} contains a token and others can read it. Run \`chmod 600 ${path}\`.`)
  return settings
}

function fileText(path: string): { readonly text: string; readonly isReadableByOthers: boolean } | null {
  let file
  try {
    file = openSync(path, 'r')
    return {
      text: readFileSync(file, 'utf8'),
      isReadableByOthers: process.platform !== 'win32' && (fstatSync(file).mode & 0o077) !== 0,
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new SettingsFault(`${path} cannot be read: ${(error as Error).message}.`, { cause: error })
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function checked(text: string, path: string): ClientSettings {
  let settings: unknown
  try {
    settings = JSON.parse(text)
  } catch (error) {
    throw new SettingsFault(`${path} is not JSON: ${(error as Error).message}.`, { cause: error })
  }
  const isText = (value: unknown): boolean =>
    value === undefined || value === null || typeof value === 'string'
  const isValid =
    isObject(settings) &&
    isText(settings['current_context']) &&
    Object.values(objectOf(settings['contexts']) ?? { '': null }).every(
      (context) => isObject(context) && isText(context['url']) && isText(context['token']),
    )
  if (!isValid)
    throw new SettingsFault(
      `${path} must be {"current_context": NAME, "contexts": {NAME: {"url": …, "token": …}}}.`,
    )
  return withoutNulls(settings as Record<string, unknown>)
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | null {
  if (value === undefined || value === null) return {}
  return isObject(value) ? value : null
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** null is the same as absent, in every depth. */
function withoutNulls(settings: Record<string, unknown>): ClientSettings {
  return JSON.parse(JSON.stringify(settings), (_, value: unknown) =>
    value === null ? undefined : value,
  ) as ClientSettings
}
