/**
 * The inputs of a controller in any schedule of faults lead to equal decisions: kills of controller and
 * servers, partitions, lost and late messages, slow stores. HEADROOM_REDECIDE_SEEDS=1000 runs 1,000 seeds,
 * HEADROOM_REDECIDE_SEED=7 only that one.
 */
import { describe, expect, it } from 'vitest'
import { redecide } from '../../simulator/experiment/recording/redecide.ts'
import { violationsOf } from '../support/fault-schedule.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const SEEDS = Number(process.env['HEADROOM_REDECIDE_SEEDS'] ?? 20)
const ONE = process.env['HEADROOM_REDECIDE_SEED']

describe('any schedule of faults', () => {
  it('is decided equally again', { timeout: 60_000 + 2_000 * SEEDS }, async () => {
    const seeds = ONE === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE)]
    const total = { starts: 0, inputs: 0, decisions: 0, events: 0 }
    for (const seed of seeds) {
      const recording = new RecordingInMemory()
      await violationsOf(seed, { watch: recording.recorder })
      expect(recording.nested).toBe(0)
      const entries = recording.entries()
      const again = await redecide(entries)
      const command = `HEADROOM_REDECIDE_SEED=${seed} vitest run test/property/redecide.test.ts`
      expect(again.difference, command).toBeNull()
      for (const key of ['starts', 'inputs', 'decisions', 'events'] as const) total[key] += again[key]
    }
    if (ONE === undefined) expect(total.decisions).toBeGreaterThan(10 * SEEDS)
    console.log(`${seeds.length} schedules: ${JSON.stringify(total)}`)
  })
})
