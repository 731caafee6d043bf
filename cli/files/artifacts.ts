/** `headroom artifacts`: the files in the work folder of a task, with size and age. */
import type { HeadroomClient, WorkFile } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { taskNamed } from '../command/task-named.ts'
import { age, byteSize } from '../output/figures.ts'
import { printList, type Column } from '../output/table.ts'

export async function artifacts(
  text: string,
  path: string | undefined,
  { output, ...server }: CommandOptions,
): Promise<number> {
  const client = openClient(server)
  const id = await taskNamed(client, text)
  const rows: WorkFile[] = []
  for await (const file of eachFile(client, id, path ?? '')) rows.push(file)
  await printList(rows, columnsAt(Date.now()), output)
  return EXIT_OK
}

/** All files below a path, page by page. */
export async function* eachFile(
  client: HeadroomClient,
  id: string,
  path: string,
): AsyncGenerator<WorkFile, void, undefined> {
  let after = ''
  for (;;) {
    const page = await client.tasks.files(id, { path, after })
    yield* page.items
    const last = page.items.at(-1)
    if (page.is_complete || last === undefined) return
    after = last.path
  }
}

function columnsAt(now: number): readonly Column<WorkFile>[] {
  return [
    { title: 'PATH', of: ({ path, kind }) => (kind === 'folder' ? `${path}/` : path) },
    { title: 'SIZE', isNumber: true, of: ({ kind, bytes }) => (kind === 'file' ? byteSize(bytes) : null) },
    { title: 'AGE', isNumber: true, of: ({ modified_at: at }) => age(at, now) },
    { title: 'KIND', isWide: true, of: ({ kind }) => kind },
  ]
}
