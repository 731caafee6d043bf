/** `headroom audit`. */
import type { AuditEntry, AuditQuery } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { printList, type Column } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'

export interface AuditOptions
  extends CommandOptions, Pick<AuditQuery, 'actor' | 'action' | 'target' | 'outcome'> {
  readonly last: number
}

/** Page size of the interface. */
const PAGE = 200

export async function audit({
  output,
  last,
  actor,
  action,
  target,
  outcome,
  ...server
}: AuditOptions): Promise<number> {
  const client = openClient(server)
  const filter = {
    ...(actor === undefined ? {} : { actor }),
    ...(action === undefined ? {} : { action }),
    ...(target === undefined ? {} : { target }),
    ...(outcome === undefined ? {} : { outcome }),
  }
  const entries: AuditEntry[] = []
  for await (const entry of client.audit.each({ ...filter, limit: Math.min(PAGE, last) })) {
    entries.push(entry)
    if (entries.length === last) break
  }
  await printList(entries, COLUMNS, output)
  return EXIT_OK
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { title: 'AT', of: (entry) => entry.at },
  { title: 'WHO', of: (entry) => entry.actor },
  { title: 'FROM', of: (entry) => entry.address },
  {
    title: 'OUTCOME',
    of: (entry) => (entry.code === null ? entry.outcome : `${entry.outcome}: ${entry.code}`),
  },
  { title: 'ACTION', of: (entry) => entry.action },
  { title: 'TARGET', of: (entry) => entry.target },
  { title: 'LEFT OUT', isNumber: true, isWide: true, of: (entry) => entry.left_out },
  { title: 'ROLE', isWide: true, of: (entry) => entry.role },
  { title: 'TOKEN', isWide: true, of: (entry) => entry.token_id },
  { title: 'REQUEST', isWide: true, of: (entry) => entry.request_id },
]
