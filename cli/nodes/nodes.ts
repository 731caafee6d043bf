/** `headroom node …`. */
import type { Node, NodeConfigChange } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import type { Palette } from '../output/terminal-text.ts'
import { impactFields, type ChangeOptions } from '../config/config.ts'
import { age, size } from '../output/figures.ts'
import { printDone, printList, printOne, type Column, type Field } from '../output/table.ts'
import { nodeNamed, openClient, pairsOf, type CommandOptions } from '../command/session.ts'
import { settingValue } from '../command/setting-values.ts'

/** Maximum items of one page. */
const PAGE = 1000

export async function nodeList({ output, ...server }: CommandOptions): Promise<number> {
  const nodes: Node[] = []
  for await (const node of openClient(server).nodes.each({ limit: PAGE })) nodes.push(node)
  await printList(nodes, nodeColumns(Date.now()), output)
  return EXIT_OK
}

export async function nodeShow(name: string, { output, ...server }: CommandOptions): Promise<number> {
  const node = await nodeNamed(openClient(server), name)
  await printOne(node, fieldsOf(node, Date.now()), output)
  return EXIT_OK
}

export async function nodeCordon(
  name: string,
  isCordoned: boolean,
  { output, ...server }: CommandOptions,
): Promise<number> {
  const client = openClient(server)
  const { node_id: id } = await nodeNamed(client, name)
  const node = isCordoned ? await client.nodes.cordon(id) : await client.nodes.uncordon(id)
  await printDone(
    node,
    `${node.name}: ${isCordoned ? 'cordoned; no new tasks are placed on it' : 'accepts tasks again'}`,
    output,
  )
  return EXIT_OK
}

export interface NodeDrainOptions extends CommandOptions {
  readonly requeue?: boolean
  /** Milliseconds. */
  readonly after?: number
}

export async function nodeDrain(
  name: string,
  { output, requeue = false, after, ...server }: NodeDrainOptions,
): Promise<number> {
  if (after !== undefined && !requeue)
    throw new UsageError('--after delays the requeueing of tasks: add --requeue')
  const client = openClient(server)
  const { node_id: id } = await nodeNamed(client, name)
  const seconds = after === undefined ? {} : { after_seconds: Math.ceil(after / 1000) }
  const node = await client.nodes.drain(id, requeue ? { requeue, ...seconds } : {})
  await printDone(node, `${node.name}: draining, ${tasksLeft(node)}`, output)
  return EXIT_OK
}

export async function nodeRemove(name: string, { output, ...server }: CommandOptions): Promise<number> {
  const client = openClient(server)
  const { node_id, name: known } = await nodeNamed(client, name)
  await client.nodes.remove(node_id)
  await printDone({ node_id, removed: true }, `${known}: removed; its server may register again`, output)
  return EXIT_OK
}

function tasksLeft({ drain }: Node): string {
  const left = drain?.tasks_left ?? 0
  return left === 0 ? 'no task is left' : `${left} ${left === 1 ? 'task is' : 'tasks are'} left`
}

const SHORT_NAMES: Readonly<Record<string, keyof NodeConfigChange>> = {
  overcommit: 'overcommit_vram_percent',
  overcommit_vram_percent: 'overcommit_vram_percent',
  reserve: 'safety_reserve_mib',
  safety_reserve_mib: 'safety_reserve_mib',
}

/** Parses `overcommit=50 reserve=2Gi`; null removes an override, and unnamed settings stay. */
export async function nodeSet(
  name: string,
  texts: readonly string[],
  { output, dryRun = false, ...server }: ChangeOptions,
): Promise<number> {
  const change: Record<string, unknown> = {}
  for (const [short, text] of pairsOf(texts)) {
    const field = SHORT_NAMES[short]
    if (field === undefined)
      throw new UsageError(`unknown node setting ${JSON.stringify(short)}; use overcommit or reserve`)
    if (field in change) throw new UsageError(`${field} is specified twice`)
    change[field] = settingValue(field, text)
  }
  const client = openClient(server)
  const before = await nodeNamed(client, name)
  // An absent percentage would be cleared (specification 4).
  const whole = { overcommit_vram_percent: before.overcommit.override_percent, ...change }
  const node = await client.nodes.configure(before.node_id, whole, { dryRun })
  if (node.impact !== undefined) {
    await printOne(node, impactFields(node.impact), output)
    return EXIT_OK
  }
  await printDone(
    node,
    `${node.name}: overcommit ${node.overcommit.effective_percent}%, reserve ` +
      `${size(node.reserve.effective_mib)} per GPU`,
    output,
  )
  return EXIT_OK
}

export function nodeColumns(now: number): readonly Column<Node>[] {
  return [
    { title: 'NAME', of: (node) => node.name },
    { title: 'STATUS', of: statusOf, colour: statusColour },
    { title: 'GPUS', isNumber: true, of: (node) => node.gpus.length },
    { title: 'TASKS', isNumber: true, of: tasksOn },
    { title: 'PHYSICAL', isNumber: true, of: (node) => size(node.vram.physical_mib) },
    { title: 'USED', isNumber: true, of: (node) => size(node.vram.used_mib) },
    { title: 'COMMITTED', isNumber: true, of: (node) => size(node.vram.committed_mib) },
    { title: 'LIMIT', isNumber: true, of: (node) => size(node.vram.commit_limit_mib) },
    { title: 'OVERCOMMIT', isNumber: true, of: (node) => `${node.overcommit.effective_percent}%` },
    { title: 'SWAPPED', isNumber: true, of: (node) => size(node.vram.swapped_mib) },
    { title: 'SEEN', isNumber: true, of: (node) => age(node.last_seen_at, now) },
    { title: 'QUEUE', isWide: true, isNumber: true, of: (node) => node.queue_length },
    { title: 'FOREIGN', isWide: true, isNumber: true, of: (node) => size(node.vram.foreign_mib) },
    { title: 'RESERVE', isWide: true, isNumber: true, of: (node) => size(node.reserve.effective_mib) },
    { title: 'MODEL', isWide: true, of: modelsOf },
    { title: 'GROUPS', isWide: true, of: (node) => node.groups.join(',') },
    { title: 'ADDRESS', isWide: true, of: (node) => node.address },
    { title: 'ID', isWide: true, of: (node) => node.node_id },
  ]
}

function statusOf(node: Node): string {
  if (node.drain !== null) return `${node.status},${node.drain.tasks_left === 0 ? 'drained' : 'draining'}`
  if (node.auto_cordon !== null) return `${node.status},auto_cordoned`
  return node.cordoned ? `${node.status},cordoned` : node.status
}

function statusColour(
  text: string,
  { status, cordoned, auto_cordon: autoCordon }: Node,
  palette: Palette,
): string {
  if (status === 'unreachable') return palette.red(text)
  return status === 'suspect' || cordoned || autoCordon !== null ? palette.yellow(text) : palette.green(text)
}

function tasksOn(node: Node): number {
  return new Set(node.gpus.flatMap((gpu) => gpu.task_ids)).size
}

function modelsOf(node: Node): string {
  return [...new Set(node.gpus.map((gpu) => gpu.model))].join(',')
}

function fieldsOf(node: Node, now: number): readonly Field[] {
  const { overcommit, reserve, vram, host_memory: host } = node
  return [
    ['name', node.name],
    ['ID', node.node_id],
    ['address', node.address],
    ['status', statusOf(node)],
    ['auto cordon', autoCordonLine(node)],
    [
      'drain',
      node.drain === null ? null : `by ${node.drain.by} since ${node.drain.since}, ${tasksLeft(node)}`,
    ],
    ['last seen', `${node.last_seen_at} (${age(node.last_seen_at, now)} ago)`],
    ['groups', node.groups],
    ['tasks run as', identityOf(node)],
    ['features', featuresOf(node)],
    [
      'overcommit',
      `${overcommit.effective_percent}% ` +
        `(${overcommit.source === 'node' ? 'node override' : 'global default'})`,
    ],
    [
      'reserve',
      `${size(reserve.effective_mib)} per GPU ` +
        `(${reserve.override_mib === null ? 'global default' : 'node override'})`,
    ],
    [
      'VRAM',
      `${size(vram.physical_mib)} physical, ${size(vram.used_mib)} used (${size(vram.foreign_mib)} ` +
        'foreign)',
    ],
    [
      'committed',
      `${size(vram.committed_mib)} of ${size(vram.commit_limit_mib)}, ${size(vram.swapped_mib)} swapped out`,
    ],
    [
      'host memory',
      `${size(host.used_mib)} of ${size(host.swap_mib)} used for swapped-out tasks, ` +
        `up to ${size(host.promised_mib)} needed at once`,
    ],
    ['queue', `${node.queue_length} waiting for VRAM`],
    ['GPUs', node.gpus.map(gpuLine)],
  ]
}

const IDENTITIES: Readonly<Record<NonNullable<Node['task_identity']>, string>> = {
  uid_per_attempt: 'each attempt has its own user',
  task_user: 'one user, different from the user of the server (--task-user)',
  root: 'root (--task-user root)',
  server_user: 'the user of the server (--tasks-as-me)',
}

/** Null: the server, or the controller, is of an earlier version. */
function identityOf({ task_identity: identity }: Partial<Pick<Node, 'task_identity'>>): string | null {
  return identity === null || identity === undefined ? null : IDENTITIES[identity]
}

/** Null: the controller is of an earlier version. */
function featuresOf({ features }: Partial<Pick<Node, 'features'>>): string | null {
  return features?.join(', ') ?? null
}

function autoCordonLine({ auto_cordon: closed }: Node): string | null {
  if (closed === null) return null
  const next = closed.is_trial_open
    ? 'trial: the next task is started as a test'
    : `next trial start at ${closed.next_trial_at}`
  return `since ${closed.since}, ${closed.code}: ${closed.reason}; ${next}`
}

function gpuLine({
  index,
  model,
  vram,
  task_ids: tasks,
  exclusive_task_id: exclusive,
}: Node['gpus'][number]): string {
  const held =
    exclusive === null ? `${tasks.length} ${tasks.length === 1 ? 'task' : 'tasks'}` : 'one exclusive task'
  return (
    `${index}  ${model}: ${size(vram.used_mib)} of ${size(vram.physical_mib)} used, ` +
    `${size(vram.committed_mib)} committed, ${held}`
  )
}
