/**
 * Surveys of pools, kept while nothing has changed: a list of a thousand pending tasks asks the same
 * questions again and again, and each survey is a pass over all GPUs of a pool.
 */
import type { Request, Survey } from '../../scheduler/explain-survey.ts'
import { surveyPool } from '../../scheduler/explain-survey.ts'
import type { Cluster } from '../cluster.ts'
import type { Pool } from '../pool/pool.ts'

/** So many different demands are remembered between two changes. */
const MAX_KEPT = 1_000

interface Kept {
  readonly changes: number
  readonly surveys: Map<string, Survey>
}

const keptOf = new WeakMap<Cluster, Kept>()

export function surveyFor(c: Cluster, pool: Pool, request: Request): Survey {
  const { shape, noswap, demandMib, maxTasksPerGpu, needsExec } = request
  let kept = keptOf.get(c)
  if (kept?.changes !== c.changes || kept.surveys.size >= MAX_KEPT) {
    kept = { changes: c.changes, surveys: new Map() }
    keptOf.set(c, kept)
  }
  // The shape's key names the pool.
  const key = `${demandMib} ${noswap} ${maxTasksPerGpu} ${needsExec ? 'exec' : '-'} ${shape.key}`
  const known = kept.surveys.get(key)
  if (known !== undefined) return known
  const survey = surveyPool(pool.nodes.keys(), request)
  kept.surveys.set(key, survey)
  return survey
}
