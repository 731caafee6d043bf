/**
 * Operators over a cluster in virtual time, with load and faults that are drawn from a seed. At every step no
 * GPU holds more than it has, no binding exceeds what the percentage allows, and no pod is swapped out before
 * its idle period; once the faults have ended, every pod that fits runs. HEADROOM_RUNS multiplies the number
 * of seeds, HEADROOM_SEED is the first of them.
 */
import { expect, it } from 'vitest'
import { drawnCluster } from '../support/kubernetes/virtual/drawn-cluster.ts'

/** The same in every run of the tests; other seeds are for long runs. */
const FIRST = Number(process.env['HEADROOM_SEED'] ?? 1)
const SEEDS = 4 * Number(process.env['HEADROOM_RUNS'] ?? 1)
const FILE = 'test/property/operator-cluster.test.ts'

it('Operators break no rule in any cluster', { timeout: 60_000 + 30_000 * SEEDS }, async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const { violations } = await drawnCluster(seed)
    const repeat = `HEADROOM_SEED=${seed} node_modules/.bin/vitest run ${FILE}`
    expect(violations, repeat).toEqual([])
  }
})

it('A seed gives the same history of the API server each time', async () => {
  const [first, second] = [await drawnCluster(FIRST), await drawnCluster(FIRST)]
  expect(second.digest).toBe(first.digest)
})
