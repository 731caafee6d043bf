/** `headroom group …`. */
import type { Group, GroupPreview } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { size } from '../output/figures.ts'
import { printDone, printList, printOne, type Column } from '../output/table.ts'
import { nodeNamed, openClient, type CommandOptions } from '../command/session.ts'

export interface GroupChangeOptions extends CommandOptions {
  readonly dryRun?: boolean
}

export interface GroupCreateOptions extends GroupChangeOptions {
  readonly description?: string
  /** Nodes by name or id. */
  readonly node: readonly string[]
}

export async function groupList({ output, ...server }: CommandOptions): Promise<number> {
  await printList(await openClient(server).groups.list(), COLUMNS, output)
  return EXIT_OK
}

export async function groupShow(id: string, { output, ...server }: CommandOptions): Promise<number> {
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

export async function groupCreate(
  id: string,
  { output, description, node, dryRun = false, ...server }: GroupCreateOptions,
): Promise<number> {
  const client = openClient(server)
  const nodeIds: string[] = []
  for (const name of node) nodeIds.push((await nodeNamed(client, name)).node_id)
  if (dryRun) return printPreview(await client.groups.tryPut(id, nodeIds), output)
  const group = await client.groups.create({
    id,
    node_ids: nodeIds,
    ...(description === undefined ? {} : { description }),
  })
  await printDone(
    group,
    `${group.id}: created with ${group.node_ids.length} ${group.node_ids.length === 1 ? 'node' : 'nodes'}`,
    output,
  )
  return EXIT_OK
}

export async function groupDelete(
  id: string,
  { output, force, dryRun = false, ...server }: GroupChangeOptions & { readonly force?: boolean },
): Promise<number> {
  if (dryRun) return printPreview(await openClient(server).groups.tryDelete(id), output)
  await openClient(server).groups.delete(id, { force: force === true })
  await printDone({ id, deleted: true }, `${id}: deleted`, output)
  return EXIT_OK
}

export async function groupAddNode(
  id: string,
  name: string,
  { output, dryRun = false, ...server }: GroupChangeOptions,
): Promise<number> {
  const client = openClient(server)
  const node = await nodeNamed(client, name)
  if (dryRun) return printPreview(await client.groups.tryAddNode(id, node.node_id), output)
  await printDone(await client.groups.addNode(id, node.node_id), `${node.name}: added to group ${id}`, output)
  return EXIT_OK
}

export async function groupRemoveNode(
  id: string,
  name: string,
  { output, dryRun = false, ...server }: GroupChangeOptions,
): Promise<number> {
  const client = openClient(server)
  const node = await nodeNamed(client, name)
  if (dryRun) return printPreview(await client.groups.tryRemoveNode(id, node.node_id), output)
  await client.groups.removeNode(id, node.node_id)
  await printDone(
    { id, node_id: node.node_id, removed: true },
    `${node.name}: removed from group ${id}`,
    output,
  )
  return EXIT_OK
}

async function printPreview(
  { preview }: { readonly preview: GroupPreview },
  output: CommandOptions['output'],
): Promise<number> {
  const nodes = ({ nodes: count, gpus, effective_schedulable_mib: mib }: GroupPreview['joining']) =>
    count === 0
      ? 'no nodes'
      : `${count} ${count === 1 ? 'node' : 'nodes'}, ${gpus} ${gpus === 1 ? 'GPU' : 'GPUs'}, ${size(mib)} ` +
        'schedulable'
  const tasks = ({ tasks: count, task_ids: ids }: GroupPreview['finishing']) =>
    count === 0 ? 'none' : [`${count}:`, ...ids]
  await printOne(
    { dry_run: true, preview },
    [
      ['leaves the common pool', nodes(preview.leaves_common_pool)],
      ['returns to the common pool', nodes(preview.returns_to_common_pool)],
      ['placed tasks that finish on their node', tasks(preview.finishing)],
      ['pending tasks that could then be placed', tasks(preview.become_feasible)],
      ['pending tasks that could no longer be placed', tasks(preview.become_infeasible)],
    ],
    output,
  )
  return EXIT_OK
}

const COLUMNS: readonly Column<Group>[] = [
  { title: 'NAME', of: (group) => group.id },
  { title: 'NODES', isNumber: true, of: (group) => group.node_ids.length },
  { title: 'DESCRIPTION', of: (group) => group.description },
  { title: 'NODE IDS', isWide: true, of: (group) => group.node_ids.join(',') },
]
