/** `headroom secret …`. */
import type { Secret } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { readSecret } from '../contexts/read-secret.ts'
import { printDone, printList, type Column } from '../output/table.ts'
import { visible } from '../output/terminal-text.ts'

const COLUMNS: readonly Column<Secret>[] = [
  { title: 'NAME', of: ({ name }) => name },
  { title: 'UPDATED', of: ({ updated_at: updatedAt }) => updatedAt },
]

export async function secretSet(name: string, { output, ...server }: CommandOptions): Promise<number> {
  const value = process.stdin.isTTY
    ? await readSecret(`Value of ${visible(name)}: `)
    : withoutLastBreak(await stdinText())
  if (value === '') throw new UsageError('no value on stdin: pipe a value, or run the command in a terminal')
  const secret = await openClient(server).secrets.set(name, value)
  await printDone(secret, `secret ${name} is set`, output)
  return EXIT_OK
}

export async function secretList({ output, ...server }: CommandOptions): Promise<number> {
  await printList(await openClient(server).secrets.list(), COLUMNS, output)
  return EXIT_OK
}

export async function secretDelete(
  names: readonly string[],
  { output, ...server }: CommandOptions,
): Promise<number> {
  const client = openClient(server)
  for (const name of names) await client.secrets.delete(name)
  await printDone({ deleted: names }, `deleted: ${names.join(', ')}`, output)
  return EXIT_OK
}

async function stdinText(): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of process.stdin) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}

/** The end of a line in a file is not part of the value. */
function withoutLastBreak(text: string): string {
  return text.replace(/\r?\n$/, '')
}
