/**
 * `headroom task explain TASK` and `headroom why-pending TASK`: the reason as a sentence, then its facts,
 * then changes that would help.
 */
import type { Explanation, Task } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { taskNamed } from '../command/task-named.ts'
import { age, size } from '../output/figures.ts'
import { printList, printOne, type Column, type Field } from '../output/table.ts'
import { ID_COLUMN, NAME_COLUMN } from './task-columns.ts'

/** Maximum nodes shown; `-o json` has all of them. */
const MAX_NODES = 5
const WIDE_MAX_NODES = 20

export async function taskExplain(text: string, { output, ...server }: CommandOptions): Promise<number> {
  const client = openClient(server)
  const id = await taskNamed(client, text)
  const [explanation, { name }] = await Promise.all([
    client.tasks.explain(id, { forecast: 'wait' }),
    client.tasks.get(id),
  ])
  const fields = fieldsOf(explanation, output === 'wide' ? WIDE_MAX_NODES : MAX_NODES)
  await printOne(explanation, [['task', taskLabel({ id, name })], ...fields], output)
  return EXIT_OK
}

function fieldsOf(explanation: Explanation, maxNodes: number): readonly Field[] {
  const { wait, placement, victim, placed_by: placedBy, swapped_out_by: swappedOutBy } = explanation
  const fields: Field[] = [
    ['state', explanation.state],
    ['residency', explanation.residency],
    ['why', explanation.sentence],
  ]
  if (wait !== null) {
    fields.push(
      ['reason', wait.reason],
      ['queue position', wait.queue_position],
      ['served before it', wait.served_before],
      ['next evaluation', wait.retry_at],
    )
    fields.push(['details', reasonLines(wait)])
  }
  if (explanation.forecast !== null) fields.push(['forecast', explanation.forecast.sentence])
  else if (wait !== null && placement === null)
    fields.push(['forecast', explanation.forecast_unavailable_because])
  fields.push(...nodeFields(explanation.verdicts, maxNodes), ...changeFields(explanation.would_fit_if))
  if (placement !== null) fields.push(['node', placement.node_name], ['GPUs', placement.gpus.join(', ')])
  if (placement !== null && placement.memory_limit_mib !== null)
    fields.push(['memory limit', memoryLimitInWords(placement)])
  if (placedBy !== null) fields.push(['placed by', `decision ${placedBy.number}: ${placedBy.sentence}`])
  if (swappedOutBy !== null)
    fields.push(['swapped out by', `decision ${swappedOutBy.number}: ${swappedOutBy.sentence}`])
  if (victim !== null) fields.push(['swap-out', victim.sentence])
  return fields.filter(([, value]) => value !== null)
}

/** Returns the requested memory limit and the limit in effect. */
function memoryLimitInWords(placement: NonNullable<Explanation['placement']>): string {
  const { memory_mib: memory, memory_limit_mib: set } = placement
  return memory === set ? size(set ?? 0) : `${size(memory ?? 0)}; ${size(set ?? 0)} including its VRAM`
}

function nodeFields(verdicts: Explanation['verdicts'], maxNodes: number): readonly Field[] {
  if (verdicts === null) return []
  const { nodes, others } = verdicts
  const lines = nodes.slice(0, maxNodes).map(({ name, fits, reason, have_mib: have, need_mib: need }) => {
    const bytes = have === null || need === null ? '' : `, has ${have} of ${need} MiB`
    return `${name}: ${fits ? 'fits' : `${reason ?? 'fits'}${bytes}`}`
  })
  const more = verdicts.node_count - lines.length
  const counted = others.map(({ reason, nodes: count }) => `${reason ?? 'fits'} ${count}`).join(', ')
  if (more > 0) lines.push(`and ${more} more${counted === '' ? '' : ` (${counted})`}`)
  return [['nodes', lines]]
}

function changeFields(wouldFit: Explanation['would_fit_if']): readonly Field[] {
  if (wouldFit === null) return []
  if (wouldFit.fits_alone)
    return [['would fit if', 'It fits once the tasks ahead of it are placed or cancelled.']]
  const lines = wouldFit.changes.map(
    ({ sentence, proviso }) => `${sentence}${proviso === null ? '' : ` ${proviso}`}`,
  )
  return [['would fit if', lines.length === 0 ? ['No single change would place the task.'] : lines]]
}

type Wait = NonNullable<Task['wait']>
type Reason = Pick<Wait, 'reason' | 'node_count' | 'have_mib' | 'need_mib'>

/** The decisive reason, then the others: `WAITING_VRAM on 3 nodes: has 4Gi, needs 16Gi`. */
export function reasonLines(wait: Wait): readonly string[] {
  return [wait, ...wait.secondary].map(reasonLine)
}

function reasonLine({ reason, node_count: nodes, have_mib: have, need_mib: need }: Reason): string {
  const where = nodes === 0 ? '' : ` on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`
  const figures = [
    have === null ? '' : `has ${size(have)}`,
    need === null ? '' : `needs ${size(need)}`,
  ].filter((text) => text !== '')
  return `${reason}${where}${figures.length === 0 ? '' : `: ${figures.join(', ')}`}`
}

export interface WhyPendingOptions extends CommandOptions {
  readonly limit: number
}

const PAGE = 200

/** For one task all details; otherwise every pending task with its reason, in queue order. */
export async function whyPending(text: string | undefined, options: WhyPendingOptions): Promise<number> {
  if (text !== undefined) return taskExplain(text, options)
  const { output, limit, ...server } = options
  const waiting: Task[] = []
  for await (const task of openClient(server).tasks.each({ state: 'pending', limit: PAGE }))
    waiting.push(task)
  await printList(waiting.sort(byQueuePosition).slice(0, limit), columns(Date.now()), output)
  return EXIT_OK
}

/** 1. Queue position. 2. Order of submission. */
function byQueuePosition(a: Task, b: Task): number {
  return (a.wait?.queue_position ?? Infinity) - (b.wait?.queue_position ?? Infinity) || a.seq - b.seq
}

function columns(now: number): readonly Column<Task>[] {
  return [
    { title: '#', isNumber: true, of: (task) => task.wait?.queue_position ?? null },
    ID_COLUMN,
    NAME_COLUMN,
    { title: 'PRIO', of: (task) => `P${task.priority}` },
    { title: 'WAITS', isNumber: true, of: (task) => age(task.pending_since, now) },
    { title: 'REASON', of: (task) => task.wait?.reason ?? null },
    { title: 'WHY', of: (task) => task.wait?.sentence ?? null },
  ]
}
