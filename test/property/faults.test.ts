/**
 * Random faults between production controllers and servers. In every case no task runs on two servers at
 * once, acknowledged changes are durable, and ended tasks stay ended; once all faults have ended, every task
 * ends. HEADROOM_FAULT_SEEDS=100000 runs 100,000 seeds, HEADROOM_FAULT_SEED=7 only that one.
 */
import { describe, expect, it } from 'vitest'
import { violationsOf } from '../support/fault-schedule.ts'

const SEEDS = Number(process.env['HEADROOM_FAULT_SEEDS'] ?? 60)
const ONE = process.env['HEADROOM_FAULT_SEED']

describe('any schedule of faults', () => {
  it('breaks no rule', { timeout: 60_000 + 1_000 * SEEDS }, async () => {
    const seeds = ONE === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE)]
    for (const seed of seeds) {
      const command = `HEADROOM_FAULT_SEED=${seed} vitest run test/property/faults.test.ts`
      expect(await violationsOf(seed), command).toEqual([])
    }
  })
})
