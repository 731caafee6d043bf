/** `headroom recovery …` and `headroom attempts …`. */
import type { Attempt, HeadroomClient, Recovery } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { plural, size } from '../output/figures.ts'
import { printDone, printList, printOne, type Column, type Field } from '../output/table.ts'
import { nodeNamed, openClient, type CommandOptions } from '../command/session.ts'

export async function recoveryStatus({ output, ...server }: CommandOptions): Promise<number> {
  const recovery = await openClient(server).recovery.get()
  await printOne(recovery, fieldsOf(recovery), output)
  return EXIT_OK
}

export async function recoveryFinish({ output, ...server }: CommandOptions): Promise<number> {
  const recovery = await openClient(server).recovery.finish()
  const paused = recovery.placements_paused
  await printDone(
    recovery,
    paused === null
      ? 'no recovery is in progress; placements are active'
      : `the recovery has ended; placements are paused: ${paused}`,
    output,
  )
  return EXIT_OK
}

function fieldsOf(status: Recovery): readonly Field[] {
  const { recovery, store, nodes_ahead: ahead } = status
  return [
    ['placements', status.placements_paused === null ? 'active' : `paused: ${status.placements_paused}`],
    [
      'recovery',
      recovery === null
        ? 'none'
        : `${recovery.reason} at ${recovery.since}, waiting for ` +
          `${plural(recovery.nodes_awaited.length, 'node')}`,
    ],
    ['awaited', [...(recovery?.nodes_awaited ?? []), ...status.nodes_awaited_since_start]],
    ['store', `epoch ${store.epoch}, event ${store.event_seq}`],
    ['ahead', `${ahead.length} of ${status.nodes_heard} nodes that have reported`],
    [
      '',
      ahead.map(
        (node) =>
          `${node.name ?? node.node_id}: ${node.reason}, epoch ${node.epoch}, event ${node.event_seq}`,
      ),
    ],
    ['result unknown', status.result_unknown],
    ['quarantined', plural(status.quarantined_attempts, 'attempt')],
  ]
}

export async function attemptsList({ output, ...server }: CommandOptions): Promise<number> {
  await printList(await openClient(server).attempts.list(), COLUMNS, output)
  return EXIT_OK
}

const COLUMNS: readonly Column<Attempt>[] = [
  { title: 'ATTEMPT', of: ({ task_id, attempt }) => `${task_id}/${attempt}` },
  { title: 'NODE', of: ({ node_name }) => node_name },
  { title: 'GPUS', of: ({ gpus }) => gpus.join(',') },
  { title: 'VRAM', of: ({ vram_mib }) => size(vram_mib) },
  { title: 'NAME', of: ({ record }) => record?.name ?? '' },
  { title: 'OWNER (HINT)', of: ({ record }) => record?.owner ?? '' },
  { title: 'STOPPED BY', of: ({ stopped_by }) => stopped_by ?? '' },
  { title: 'COMMAND', of: ({ record }) => record?.command?.join(' ') ?? '', isWide: true },
]

export interface StopAttemptOptions extends CommandOptions {
  readonly node?: string
}

export interface AdoptOptions extends StopAttemptOptions {
  readonly owner: string
  readonly name?: string
}

export async function attemptsAdopt(
  text: string,
  { output, owner, name, node, ...server }: AdoptOptions,
): Promise<number> {
  const client = openClient(server)
  const { taskId, attempt } = attemptNamed(text)
  const body = { owner, ...(name === undefined ? {} : { name }), ...(await nodeIdOf(client, node)) }
  const task = await client.attempts.adopt(taskId, attempt, body)
  await printDone(task, `${text}: adopted as a task of ${owner}`, output)
  return EXIT_OK
}

export async function attemptsStop(
  text: string,
  { output, node, ...server }: StopAttemptOptions,
): Promise<number> {
  const client = openClient(server)
  const { taskId, attempt } = attemptNamed(text)
  const stopped = await client.attempts.stop(taskId, attempt, await nodeIdOf(client, node))
  await printDone(stopped, `${text}: stop requested on ${stopped.node_name}`, output)
  return EXIT_OK
}

async function nodeIdOf(
  client: HeadroomClient,
  name: string | undefined,
): Promise<{ readonly node_id?: string }> {
  return name === undefined ? {} : { node_id: (await nodeNamed(client, name)).node_id }
}

function attemptNamed(text: string): { readonly taskId: string; readonly attempt: number } {
  const at = text.lastIndexOf('/')
  const attempt = Number(text.slice(at + 1))
  if (at < 1 || !Number.isSafeInteger(attempt) || attempt < 1)
    throw new UsageError(`${JSON.stringify(text)} must be TASK/ATTEMPT`)
  return { taskId: text.slice(0, at), attempt }
}
