/** A range of seeds of `sim fuzz`, run in a worker process. */
import { addCounts, type Counts } from '../../simulator/experiment/fuzz/coverage.ts'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { judge, type Finding } from '../../simulator/experiment/fuzz/judge.ts'
import { createOperatorClients } from './shared-operator-clients.ts'

export interface FuzzTask {
  readonly seeds: readonly number[]
}

export interface FuzzFailure {
  readonly seed: number
  readonly findings: readonly Finding[]
}

export interface FuzzAnswer {
  /** One per seed, in order; null: the run was aborted. */
  readonly digests: readonly (string | null)[]
  readonly failures: readonly FuzzFailure[]
  readonly counts: Counts
  readonly steps: number
}

/** One in this number of seeds is run again after the range, and must give the same digest. */
const REPEAT_INTERVAL = 50
/** The routes are the same for all worlds of a process. */
const operatorClients = createOperatorClients()

export async function runFuzzTask(
  { seeds }: FuzzTask,
  onProgress: (fraction: number) => void,
): Promise<FuzzAnswer> {
  const digests: (string | null)[] = []
  const failures: FuzzFailure[] = []
  const counts = new Map<string, number>()
  let steps = 0
  for (const seed of seeds) {
    const verdict = await judge(scenarioOf(drawDocument(seed)), operatorClients.openOperatorClient)
    digests.push(verdict.digest)
    steps += verdict.steps
    addCounts(counts, verdict.counts)
    if (verdict.violations.length > 0) failures.push({ seed, findings: verdict.violations })
    onProgress(digests.length / seeds.length)
  }
  for (const [index, seed] of seeds.entries()) {
    const digest = digests[index] ?? null
    if (seed % REPEAT_INTERVAL !== 0 || digest === null) continue
    const again = (await judge(scenarioOf(drawDocument(seed)), operatorClients.openOperatorClient)).digest
    if (again !== digest)
      failures.push({
        seed,
        findings: [
          {
            rule: 'same_digest',
            sentence: `the digest is ${digest} in the first run and ${again} in the second`,
          },
        ],
      })
  }
  return { digests, failures, counts: Object.fromEntries(counts), steps }
}
