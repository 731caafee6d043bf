/** `headroom group …`. */
import type { Group } from '../client/client.ts'
import { EXIT_OK } from '../exit-codes.ts'
import { printDone, printList, printOne, type Column } from './output.ts'
import { nodeNamed, openClient, type VerbOptions } from './session.ts'

export interface GroupCreateOptions extends VerbOptions {
  readonly description?: string
  /** By name or id. */
  readonly node: readonly string[]
}

export async function groupList({ output, ...server }: VerbOptions): Promise<number> {
  await printList(await openClient(server).groups.list(), COLUMNS, output)
  return EXIT_OK
}

export async function groupShow(id: string, { output, ...server }: VerbOptions): Promise<number> {
  const group = await openClient(server).groups.get(id)
  await printOne(
    group,
    [
      ['name', group.id],
      ['description', group.description],
      ['nodes', group.node_ids],
    ],
    output,
  )
  return EXIT_OK
}

export async function groupCreate(id: string, { output, description, node, ...server }: GroupCreateOptions): Promise<number> {
  const client = openClient(server)
  const nodeIds: string[] = []
  for (const name of node) nodeIds.push((await nodeNamed(client, name)).node_id)
  const group = await client.groups.create({ id, node_ids: nodeIds, ...(description === undefined ? {} : { description }) })
  await printDone(group, `${group.id}: created with ${group.node_ids.length} ${group.node_ids.length === 1 ? 'node' : 'nodes'}`, output)
  return EXIT_OK
}

export async function groupDelete(id: string, { output, force, ...server }: VerbOptions & { readonly force?: boolean }): Promise<number> {
  await openClient(server).groups.delete(id, { force: force === true })
  await printDone({ id, deleted: true }, `${id}: deleted`, output)
  return EXIT_OK
}

export async function groupAddNode(id: string, name: string, { output, ...server }: VerbOptions): Promise<number> {
  const client = openClient(server)
  const node = await nodeNamed(client, name)
  await printDone(await client.groups.addNode(id, node.node_id), `${node.name}: is in ${id}`, output)
  return EXIT_OK
}

export async function groupRemoveNode(id: string, name: string, { output, ...server }: VerbOptions): Promise<number> {
  const client = openClient(server)
  const node = await nodeNamed(client, name)
  await client.groups.removeNode(id, node.node_id)
  await printDone({ id, node_id: node.node_id, removed: true }, `${node.name}: is no longer in ${id}`, output)
  return EXIT_OK
}

const COLUMNS: readonly Column<Group>[] = [
  { title: 'NAME', of: (group) => group.id },
  { title: 'NODES', isNumber: true, of: (group) => group.node_ids.length },
  { title: 'DESCRIPTION', of: (group) => group.description },
  { title: 'NODE IDS', isWide: true, of: (group) => group.node_ids.join(',') },
]
