/** `headroom context …`: the controllers that the settings file names. */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import {
  readClientSettings,
  settingsPath,
  type ClientSettings,
  type Context,
} from '../../clients/typescript/connection.ts'
import { CommandFailure, EXIT_NOT_FOUND, EXIT_OK } from '../../services/exit-codes.ts'
import { OutputFile } from '../../services/output-file.ts'
import type { OutputFormat } from '../output/formats.ts'
import { printList, type Column } from '../output/table.ts'
import { visible } from '../output/terminal-text.ts'

/** Stores the context and makes it the current one. */
export function storeContext(name: string, context: Context): void {
  const settings = readClientSettings(settingsPath(process.env))
  writeSettings({
    ...settings,
    current_context: name,
    contexts: { ...settings.contexts, [name]: context },
  })
}

interface Row {
  readonly name: string
  readonly url: string | null
  readonly has_token: boolean
  readonly is_current: boolean
}

export async function contextList({ output }: { readonly output: OutputFormat }): Promise<number> {
  const { current_context: current, contexts = {} } = readClientSettings(settingsPath(process.env))
  const rows = Object.entries(contexts).map(([name, { url = null, token }]) => ({
    name,
    url,
    has_token: token !== undefined,
    is_current: name === current,
  }))
  await printList(rows, COLUMNS, output)
  return EXIT_OK
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'CURRENT', of: ({ is_current: isCurrent }) => (isCurrent ? '*' : '') },
  { title: 'NAME', of: ({ name }) => name },
  { title: 'URL', of: ({ url }) => url },
  { title: 'TOKEN', of: ({ has_token: hasToken }) => (hasToken ? 'yes' : 'no') },
]

export function contextUse(name: string): number {
  const settings = readClientSettings(settingsPath(process.env))
  requireContext(settings, name)
  writeSettings({ ...settings, current_context: name })
  process.stdout.write(`${visible(name)}: current context\n`)
  return EXIT_OK
}

/** Its token stays valid: only an admin can revoke it. */
export function contextRemove(name: string): number {
  const settings = readClientSettings(settingsPath(process.env))
  requireContext(settings, name)
  const { current_context: current, contexts = {}, ...others } = settings
  const { [name]: _, ...remaining } = contexts
  const isCurrent = current === name
  writeSettings({
    ...others,
    ...(isCurrent || current === undefined ? {} : { current_context: current }),
    contexts: remaining,
  })
  process.stdout.write(`${visible(name)}: removed${isCurrent ? '; there is no current context now' : ''}\n`)
  return EXIT_OK
}

function requireContext({ contexts = {} }: ClientSettings, name: string): void {
  if (Object.hasOwn(contexts, name)) return
  const names = Object.keys(contexts)
  const known = names.length === 0 ? 'Run `headroom login URL` to add one.' : `Contexts: ${names.join(', ')}.`
  throw new CommandFailure(`Context ${JSON.stringify(name)} not found. ${known}`, EXIT_NOT_FOUND)
}

function writeSettings(settings: ClientSettings): void {
  const path = settingsPath(process.env)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const file = new OutputFile(path, path, 0o600)
  file.write(`${JSON.stringify(settings, null, 2)}\n`)
  file.publish()
}
