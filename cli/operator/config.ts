/** `headroom config …`. */
import type { Config, ConfigFields } from '../client/client.ts'
import { EXIT_OK, UsageError } from '../exit-codes.ts'
import { printList, printOne, type Column } from './output.ts'
import { openClient, pairsOf, type VerbOptions } from './session.ts'
import { settingValue } from './setting-values.ts'

/** Of one field only its value is printed, for scripts. */
export async function configGet(field: string | undefined, { output, ...server }: VerbOptions): Promise<number> {
  const config = await openClient(server).config.get()
  if (field === undefined) {
    await print(config, output)
    return EXIT_OK
  }
  if (!Object.hasOwn(config, field)) {
    throw new UsageError(`there is no setting ${JSON.stringify(field)}; there are ${Object.keys(config).join(', ')}`)
  }
  process.stdout.write(`${JSON.stringify(config[field as keyof Config]).replace(/^"(.*)"$/, '$1')}\n`)
  return EXIT_OK
}

export async function configSet(texts: readonly string[], { output, ...server }: VerbOptions): Promise<number> {
  const change = Object.fromEntries([...pairsOf(texts)].map(([name, text]) => [name, settingValue(name, text)]))
  await print(await openClient(server).config.set(change as Partial<ConfigFields>), output)
  return EXIT_OK
}

interface Setting {
  readonly name: string
  readonly value: string
}

async function print(config: Config, output: VerbOptions['output']): Promise<void> {
  if (output !== 'table' && output !== 'wide') return printOne(config, [], output)
  const settings = Object.entries(config).map(([name, value]): Setting => ({ name, value: value === null ? 'null' : String(value) }))
  await printList(settings, COLUMNS, output)
}

const COLUMNS: readonly Column<Setting>[] = [
  { title: 'SETTING', of: ({ name }) => name },
  { title: 'VALUE', of: ({ value }) => value },
]
