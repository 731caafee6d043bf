/**
 * A controller restored from the checkpoint of another decides like that one, wherever the recording was cut.
 * HEADROOM_REDECIDE_SEEDS=1000 runs 1,000 seeds, HEADROOM_REDECIDE_SEED=7 only that one.
 */
import { describe, expect, it } from 'vitest'
import type { Checkpoint } from '../../controller/ports/recording-log.ts'
import { redecide, Redecision } from '../../simulator/experiment/recording/redecide.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { violationsOf } from '../support/fault-schedule.ts'
import { RecordingInMemory } from '../support/recording-in-memory.ts'

const SEEDS = Number(process.env['HEADROOM_REDECIDE_SEEDS'] ?? 12)
const ONE = process.env['HEADROOM_REDECIDE_SEED']
const CUTS = 3

describe('any schedule of faults', () => {
  it('is decided equally from any checkpoint', { timeout: 60_000 + 2_000 * SEEDS }, async () => {
    const seeds = ONE === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE)]
    let decisions = 0
    for (const seed of seeds) {
      const recording = new RecordingInMemory()
      await violationsOf(seed, { watch: recording.recorder })
      const entries = recording.entries()
      const random = createSeededRandom(String(seed)).stream('cuts')
      const cuts = new Set(
        Array.from({ length: CUTS }, () => 1 + Math.floor(random() * (entries.length - 1))),
      )
      const first = new Redecision()
      for (const [i, entry] of entries.entries()) {
        if (cuts.has(i)) {
          const where =
            `HEADROOM_REDECIDE_SEED=${seed} vitest run test/property/redecide-from-checkpoint.test.ts; ` +
            `cut at ${i}`
          const checkpoint = JSON.parse(JSON.stringify(first.checkpoint())) as Checkpoint
          const rest = await redecide([checkpoint, ...entries.slice(i)])
          expect(rest.difference, where).toBeNull()
          decisions += rest.decisions
        }
        await first.next(entry)
      }
      expect(first.difference).toBeNull()
    }
    if (ONE === undefined) expect(decisions).toBeGreaterThan(10 * SEEDS)
    console.log(`${seeds.length} schedules, ${CUTS} cuts each: ${decisions} decisions after them`)
  })
})
