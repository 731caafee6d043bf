/** `headroom twin`: the accuracy of the twin's forecasts. */
import type { Twin } from '../../clients/typescript/client.ts'
import { EXIT_OK } from '../../services/exit-codes.ts'
import { printOne, type Field } from '../output/table.ts'
import { openClient, type CommandOptions } from '../command/session.ts'

const METRICS = ['queue_wait_s', 'starvation_percent', 'utilization_percent', 'swap_outs_per_hour'] as const
/** Maximum intervals shown; `-o json` has all. */
const SHOWN = 6

export async function twinState({ output, ...server }: CommandOptions): Promise<number> {
  const twin = await openClient(server).twin()
  await printOne(twin, fieldsOf(twin), output)
  return EXIT_OK
}

function fieldsOf({
  state,
  scores,
  threshold,
  unavailable_because: because,
  history,
}: Twin): readonly Field[] {
  const fields: Field[] = [['twin', `${state}; a score above ${threshold} is drift`]]
  for (const metric of METRICS) fields.push([metric, [scoreOf(scores[metric]), ...latestOf(history, metric)]])
  if (because !== null) fields.push(['not forecast', because])
  return fields
}

function scoreOf(score: number | null): string {
  return score === null ? 'nothing compared yet' : `score ${score.toFixed(2)}`
}

function latestOf(history: Twin['history'], metric: (typeof METRICS)[number]): string[] {
  return history.slice(-SHOWN).flatMap(({ to, ...entry }) => {
    const point = entry[metric]
    if (point === null) return []
    return [
      `${to}: actual ${point.actual.toFixed(1)}, predicted ${point.p50.toFixed(1)} ` +
        `(${point.p10.toFixed(1)} to ${point.p90.toFixed(1)})`,
    ]
  })
}
