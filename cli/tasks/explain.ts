/**
 * `headroom task explain TASK` and `headroom why-pending TASK`: the reason as a sentence, then its facts,
 * then changes that would help.
 */
import type { Explanation } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { printOne, type Field } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { reasonLines } from './wait.ts'

/** Maximum nodes shown; `-o json` has all of them. */
const MAX_NODES = 5
const WIDE_MAX_NODES = 20

export async function taskExplain(id: string, { output, ...server }: CommandOptions): Promise<number> {
  const explanation = await openClient(server).tasks.explain(id, { forecast: 'wait' })
  await printOne(explanation, fieldsOf(explanation, output === 'wide' ? WIDE_MAX_NODES : MAX_NODES), output)
  return EXIT_OK
}

function fieldsOf(explanation: Explanation, maxNodes: number): readonly Field[] {
  const { wait, placement, victim, placed_by: placedBy, swapped_out_by: swappedOutBy } = explanation
  const fields: Field[] = [
    ['task', explanation.task_id],
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
  if (placedBy !== null) fields.push(['placed by', `decision ${placedBy.number}: ${placedBy.sentence}`])
  if (swappedOutBy !== null)
    fields.push(['swapped out by', `decision ${swappedOutBy.number}: ${swappedOutBy.sentence}`])
  if (victim !== null) fields.push(['swap-out', victim.sentence])
  return fields
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
  if (wouldFit.fits_alone) return [['would fit if', 'It fits once the tasks before it are placed or leave.']]
  const lines = wouldFit.changes.map(
    ({ sentence, proviso }) => `${sentence}${proviso === null ? '' : ` ${proviso}`}`,
  )
  return [['would fit if', lines.length === 0 ? ['No single change would place it.'] : lines]]
}
