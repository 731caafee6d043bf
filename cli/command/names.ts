/** `headroom names KIND`: words for shell completion. It is fast or prints nothing. */
import type { HeadroomClient } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import type { NameKind } from './completion.ts'
import { openClient, type ServerOption } from './session.ts'

const WITHIN_MS = 3_000
const MAX_NAMES = 200
/** Shells expand other characters. */
const PLAIN = /^[A-Za-z0-9][\w.:@+-]*$/

export async function names(kind: NameKind, options: ServerOption): Promise<number> {
  const signal = AbortSignal.timeout(WITHIN_MS)
  const found = new Set<string>()
  for await (const name of listOf(openClient(options, { signal }), kind)) {
    if (PLAIN.test(name)) found.add(name)
    if (found.size === MAX_NAMES) break
  }
  process.stdout.write([...found].map((name) => `${name}\n`).join(''))
  return EXIT_OK
}

/** A task without a name of its own is named by its id. */
async function* listOf(client: HeadroomClient, kind: NameKind): AsyncGenerator<string> {
  switch (kind) {
    case 'tasks':
      for (const state of ['running', 'pending'] as const)
        for await (const { name } of client.tasks.each({ state, limit: MAX_NAMES })) yield name
      return
    case 'nodes':
      for await (const { name } of client.nodes.each({ limit: MAX_NAMES })) yield name
      return
    case 'groups':
      for (const { id } of await client.groups.list({})) yield id
  }
}
