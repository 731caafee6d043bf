/** `headroom decisions [NUMBER]`. */
import type { Decision, DecisionQuery } from '../../clients/typescript/client.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { printList, printOne, type Column, type Field } from '../output/table.ts'
import { nodeNamed, openClient, type CommandOptions } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { taskNamed } from '../command/task-named.ts'

export interface DecisionsOptions extends CommandOptions {
  readonly task?: string
  readonly node?: string
  readonly kind?: NonNullable<DecisionQuery['kind']>
  readonly last: number
  readonly after?: number
}

/** Maximum items of one page. */
const PAGE = 200

export async function decisions(number: string | undefined, options: DecisionsOptions): Promise<number> {
  if (number !== undefined) return decisionShow(number, options)
  const { output, task, node, kind, last, after, ...server } = options
  const client = openClient(server)
  const filter = {
    ...(task === undefined ? {} : { task: await taskNamed(client, task) }),
    ...(kind === undefined ? {} : { kind }),
    ...(node === undefined ? {} : { node: (await nodeNamed(client, node)).node_id }),
  }
  const found: Decision[] = []
  let place: Pick<DecisionQuery, 'after' | 'before'> = after === undefined ? {} : { after }
  while (found.length < last) {
    const limit = Math.min(PAGE, last - found.length)
    const page = await client.decisions.list({ ...filter, ...place, limit })
    found.push(...page.items)
    if (page.next_before !== null) place = { before: page.next_before }
    else if (page.next_after !== null && page.items.length === limit) place = { after: page.next_after }
    else break
  }
  await printList(after === undefined ? found.toReversed() : found, COLUMNS, output)
  return EXIT_OK
}

async function decisionShow(text: string, { output, ...server }: CommandOptions): Promise<number> {
  if (!/^[1-9]\d{0,14}$/.test(text))
    throw new UsageError(`${JSON.stringify(text)} must be a decision number (see headroom decisions)`)
  const decision = await openClient(server).decisions.get(Number(text))
  await printOne(decision, fieldsOf(decision), output)
  return EXIT_OK
}

const COLUMNS: readonly Column<Decision>[] = [
  { title: 'NUMBER', isNumber: true, of: ({ number }) => number },
  { title: 'AT', of: ({ at }) => at },
  { title: 'DECISION', of: ({ kind }) => kind },
  { title: 'RULE', of: ({ rule }) => rule },
  { title: 'TASK', isWide: true, of: (decision) => decision.task_name },
  { title: 'NODE', isWide: true, of: (decision) => decision.node_name },
  { title: 'WHY', of: ({ sentence }) => sentence },
]

function fieldsOf(decision: Decision): readonly Field[] {
  const fields: Field[] = [
    ['decision', decision.number],
    ['at', decision.at],
    ['kind', decision.kind],
    ['rule', decision.rule],
    ['why', decision.sentence],
    ['task', taskLabel({ id: decision.task_id, name: decision.task_name })],
    ['GPUs', `${decision.gpus.join(', ')} of ${decision.node_name}`],
    ['caused by', decision.caused_by === null ? null : `event ${decision.caused_by}`],
    ['waited', decision.waited_seconds === null ? null : `${decision.waited_seconds} s`],
  ]
  const gpus = decision.gpus_considered.map(
    (gpu) => `${gpu.chosen ? '* ' : '  '}GPU ${gpu.gpu} of ${gpu.node_name}: keys ${gpu.key1}, ${gpu.key2}`,
  )
  if (gpus.length > 0) fields.push(['GPUs considered', decision.gpus_more ? [...gpus, '  and more'] : gpus])
  if (decision.missing.length > 0)
    fields.push(['missing', decision.missing.map(({ gpu, mib }) => `GPU ${gpu}: ${mib} MiB`)])
  const candidates = decision.candidates.map(
    (one) =>
      `${one.chosen_by === null ? '  ' : '* '}` +
      `${taskLabel({ id: one.task_id, name: one.task_name ?? one.task_id })} ` +
      `on GPU ${one.gpu}: ${one.level}${one.above_request ? ', above its request' : ''}, ` +
      `last swap-out ${one.last_swap_out ?? 'never'}, ${one.mib} MiB, ` +
      `idle ${Math.floor(one.idle_seconds)} s${one.chosen_by === null ? '' : ` (${one.chosen_by})`}`,
  )
  const left = decision.candidates_left_out
  if (candidates.length > 0)
    fields.push(['candidates', left > 0 ? [...candidates, `  and ${left} more`] : candidates])
  const others = decision.others_waiting.map(
    (one) => `${one.task_id}: ${one.what}, waiting for ${one.waited_seconds} s`,
  )
  if (others.length > 0) fields.push(['other waiting tasks', others])
  return fields
}
