/**
 * Draws tasks that take time to end after SIGTERM, with shorter and longer grace periods, and cancels that
 * meet them. All from a separate random stream: the other draws of a seed do not depend on it.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry, FuzzDocument, Value } from './document.ts'
import type { Features } from './features.ts'

type Drawn = Pick<FuzzDocument, 'config' | 'workload'>

/** Longer than a world with faults can wait for; only for worlds without. */
interface Spans {
  readonly graces: readonly number[]
  readonly takesMs: readonly number[]
}
const CALM: Spans = { graces: [0, 1, 5, 15, 40], takesMs: [1, 700, 3_000, 12_000, 60_000] }
const FAULTY: Spans = { graces: [0, 1, 3], takesMs: [1, 700, 2_000, 5_000] }

/** @param arrivalsMs latest arrival of a task */
export function drawStops(
  dice: FuzzRandom,
  { config, workload }: Drawn,
  { on, faults }: Features,
  arrivalsMs: DurationMs,
): Drawn {
  if (!on.has('stop_graces')) return { config, workload }
  const spans = faults.length === 0 ? CALM : FAULTY
  return {
    config: {
      ...config,
      stop_grace_seconds: dice.oneOf(spans.graces),
      max_stop_grace_seconds: dice.oneOf([2, 20, 300]),
    },
    workload: workload.map(({ task }) => ({ task: withStop(dice, task as Entry, spans, arrivalsMs) })),
  }
}

function withStop(dice: FuzzRandom, task: Entry, { graces, takesMs }: Spans, arrivalsMs: DurationMs): Entry {
  const grace = dice.chance(60) ? { stop_grace_seconds: dice.oneOf(graces) } : {}
  const takes = dice.chance(70) ? { stop_takes: `${dice.oneOf(takesMs)}ms` } : {}
  const cancelAtMs = msOf(task['at']) + dice.below(arrivalsMs)
  const cancelled = task['cancel_at'] === undefined && dice.chance(30) ? { cancel_at: `${cancelAtMs}ms` } : {}
  return { ...task, ...grace, ...takes, ...cancelled }
}

function msOf(at: Value | undefined): DurationMs {
  return Number(String(at).replace('ms', ''))
}
