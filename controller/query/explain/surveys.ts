/**
 * Caches surveys of pools while nothing changes: a list of a thousand pending tasks repeats the same
 * questions, and each survey scans all GPUs of a pool.
 */
import { surveyPool, type Request, type Survey } from './explain-survey.ts'
import type { Cluster } from '../../state/cluster.ts'
import type { Pool } from '../../state/index/pool.ts'

/** Maximum number of surveys cached between two changes. */
const MAX_CACHED = 1_000

interface CachedSurveys {
  readonly changes: number
  readonly surveys: Map<string, Survey>
}

const cacheOf = new WeakMap<object, CachedSurveys>()

export function surveyFor(c: Pick<Cluster, 'changes'>, pool: Pool, request: Request): Survey {
  let kept = cacheOf.get(c)
  if (kept?.changes !== c.changes || kept.surveys.size >= MAX_CACHED) {
    kept = { changes: c.changes, surveys: new Map() }
    cacheOf.set(c, kept)
  }
  const key = keyOf(request)
  const known = kept.surveys.get(key)
  if (known !== undefined) return known
  const survey = surveyPool(pool.nodes.keys(), request)
  kept.surveys.set(key, survey)
  return survey
}

/** The same for equal requests to one pool, which the key of the shape names. */
export function keyOf({ shape, noswap, demandMib, maxTasksPerGpu, needsExec, features }: Request): string {
  const runs = needsExec ? `exec ${features.join()}` : '-'
  return `${demandMib} ${noswap} ${maxTasksPerGpu} ${runs} ${shape.key}`
}
