import type { Node } from '../../model/placement.ts'
import { csvHead, csvRow, type CsvColumns } from '../http/csv.ts'
import type { NodeBody } from './schema.ts'

const COLUMNS: CsvColumns<NodeBody> = {
  node_id: (node) => node.node_id,
  name: ({ name }) => name,
  address: ({ address }) => address,
  status: ({ status }) => status,
  cordoned: ({ cordoned }) => cordoned,
  draining: ({ drain }) => drain !== null,
  groups: ({ groups }) => groups.join(' '),
  gpus: ({ gpus }) => gpus.length,
  overcommit_percent: ({ overcommit }) => overcommit.effective_percent,
  overcommit_source: ({ overcommit }) => overcommit.source,
  reserve_mib: ({ reserve }) => reserve.effective_mib,
  physical_mib: ({ vram }) => vram.physical_mib,
  used_mib: ({ vram }) => vram.used_mib,
  committed_mib: ({ vram }) => vram.committed_mib,
  swapped_mib: ({ vram }) => vram.swapped_mib,
  commit_limit_mib: ({ vram }) => vram.commit_limit_mib,
  attempts: ({ attempts }) => attempts,
  queue_length: (node) => node.queue_length,
  swap_outs: ({ swaps }) => swaps.outs,
  swap_ins: ({ swaps }) => swaps.ins,
  last_seen_at: (node) => node.last_seen_at,
}

export function* csvOfNodes(nodes: readonly Node[], present: (node: Node) => NodeBody): Generator<string> {
  yield csvHead(COLUMNS)
  for (const node of nodes) yield csvRow(COLUMNS, present(node))
}
