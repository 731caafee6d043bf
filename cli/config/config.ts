/** `headroom config …`. */
import type { ChangedConfig, Config, ConfigFields, Revision } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { impactFields, overLine } from './impact.ts'
import { printList, printOne, type Column } from '../output/table.ts'
import { openClient, pairsOf, type CommandOptions } from '../command/session.ts'
import { settingValue } from '../command/setting-values.ts'

export interface ChangeOptions extends CommandOptions {
  readonly dryRun?: boolean
}

export interface HistoryOptions extends CommandOptions {
  readonly last: number
}

const PAGE = 200

/** For one field prints only its value, for scripts. */
export async function configGet(
  field: string | undefined,
  { output, ...server }: CommandOptions,
): Promise<number> {
  const config = await openClient(server).config.get()
  if (field === undefined) {
    await print(config, output)
    return EXIT_OK
  }
  if (!Object.hasOwn(config, field)) {
    throw new UsageError(
      `unknown setting ${JSON.stringify(field)}; use one of ${Object.keys(config).join(', ')}`,
    )
  }
  process.stdout.write(`${JSON.stringify(config[field as keyof Config]).replace(/^"(.*)"$/, '$1')}\n`)
  return EXIT_OK
}

export async function configSet(
  texts: readonly string[],
  { output, dryRun = false, ...server }: ChangeOptions,
): Promise<number> {
  const change = Object.fromEntries(
    [...pairsOf(texts)].map(([name, text]) => [name, settingValue(name, text)]),
  )
  await printChanged(await openClient(server).config.set(change as Partial<ConfigFields>, { dryRun }), output)
  return EXIT_OK
}

/** Newest last, like events. */
export async function configHistory({ output, last, ...server }: HistoryOptions): Promise<number> {
  const client = openClient(server)
  const revisions: Revision[] = []
  for (let before: number | null | undefined; before !== null && revisions.length < last;) {
    const limit = Math.min(PAGE, last - revisions.length)
    const page = await client.config.revisions({ limit, ...(before === undefined ? {} : { before }) })
    revisions.push(...page.items)
    before = page.next_before
  }
  await printList(revisions.toReversed(), REVISION_COLUMNS, output)
  return EXIT_OK
}

export async function configRestore(
  text: string,
  { output, dryRun = false, ...server }: ChangeOptions,
): Promise<number> {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new UsageError(`${JSON.stringify(text)} must be the number of a revision (headroom config history)`)
  await printChanged(await openClient(server).config.restore(Number(text), { dryRun }), output)
  return EXIT_OK
}

interface Setting {
  readonly name: string
  readonly value: string
}

async function print(config: object, output: CommandOptions['output']): Promise<void> {
  if (output !== 'table' && output !== 'wide') return printOne(config, [], output)
  const settings = Object.entries(config).map(([name, value]): Setting => ({
    name,
    value: value === null ? 'null' : String(value),
  }))
  await printList(settings, COLUMNS, output)
}

/** Tables show the settings, then the exceeded limits; for a dry run its impact instead. */
async function printChanged(changed: ChangedConfig, output: CommandOptions['output']): Promise<void> {
  if (output !== 'table' && output !== 'wide') return printOne(changed, [], output)
  const { over, impact, dry_run: _dryRun, ...config } = changed
  if (impact !== undefined) return printOne(changed, impactFields(impact), output)
  await print(config, output)
  const line = overLine(over)
  if (line !== null) process.stderr.write(`${line}\n`)
}

const COLUMNS: readonly Column<Setting>[] = [
  { title: 'SETTING', of: ({ name }) => name },
  { title: 'VALUE', of: ({ value }) => value },
]

const REVISION_COLUMNS: readonly Column<Revision>[] = [
  { title: 'REVISION', isNumber: true, of: ({ revision }) => revision },
  { title: 'AT', of: ({ at }) => at },
  { title: 'BY', of: ({ author }) => author },
  { title: 'CHANGED', of: (revision) => changesIn(revision) },
]

function changesIn({ changed, before, after }: Revision): string {
  if (before === null) return `${changed.length} settings for the first time`
  const names = changed as readonly (keyof ConfigFields)[]
  if (names.length === 0) return 'nothing'
  return names.map((name) => `${name} ${String(before[name])} → ${String(after[name])}`).join(', ')
}
