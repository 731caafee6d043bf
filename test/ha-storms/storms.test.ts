/** Storms of lost leaders (make test-ha-storm): a few loops in `make test-kills`. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { figure } from '../durability/controller-on.ts'
import { spread } from '../ha/spread.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { whyNoPostgres } from '../support/postgres-server.ts'
import { LeaderStorm, type Loop } from './storm.ts'

const LOOPS = figure('HA_STORM_LOOPS', 5)
/** An interrupted run continues with this loop. */
const FROM = figure('HA_STORM_FROM', 1)
const SEED = process.env['HA_STORM_SEED'] ?? '1'
/** One line per loop; with `.failed`: the loop that failed, and the output of all processes. */
const LOG = process.env['HA_STORM_LOG'] ?? join(tmpdir(), `headroom-ha-storm-${SEED}.jsonl`)
/** Loops on one cluster: the history of a longer one would slow it down. */
const LOOPS_PER_CLUSTER = 100
const TIMEOUT_MS = 300_000 + LOOPS_PER_CLUSTER * 60_000

const clusters = Array.from({ length: Math.ceil((LOOPS - FROM + 1) / LOOPS_PER_CLUSTER) }, (_, i) => {
  const first = FROM + i * LOOPS_PER_CLUSTER
  return { first, last: Math.min(LOOPS, first + LOOPS_PER_CLUSTER - 1) }
})

const why = whyNoPostgres() ?? whyNoNatsServer()
describe.skipIf(why !== null)('storms of lost leaders', { timeout: TIMEOUT_MS }, () => {
  const loops: Loop[] = []

  it.each(clusters)(
    `loops $first to $last of ${LOOPS}, seed ${SEED}: no write is lost, and no task runs twice`,
    async ({ first, last }) => {
      const storm = await LeaderStorm.start()
      let number = first
      try {
        for (; number <= last; number++) {
          const loop = await storm.loop(`${SEED}/${number}`)
          loops.push(loop)
          appendFileSync(LOG, `${JSON.stringify({ number, seed: SEED, ...loop })}\n`)
          expect(storm.violations).toEqual([])
        }
        await storm.settle()
        expect(storm.violations).toEqual([])
        console.log(`loops ${first} to ${last}: ${JSON.stringify(storm.figures)}`)
        expect(storm.figures.overBus).toBeGreaterThan(0)
        expect(storm.figures.obeyed).toBeGreaterThan(0)
        expect(storm.figures.late).toBeGreaterThan(0)
      } catch (error) {
        const at = Math.min(number, last)
        const failed = { number: at, seed: SEED, violations: storm.violations, error: String(error) }
        writeFileSync(`${LOG}.failed`, `${JSON.stringify(failed)}\n${storm.output}`)
        throw new Error(
          `repeat: make test-ha-storm HA_STORM_SEED=${SEED} HA_STORM_FROM=${at} HA_STORM_LOOPS=${at}`,
          { cause: error },
        )
      } finally {
        await storm.end()
      }
    },
  )

  it('prints how long the loops took', () => {
    const times = (of: (loop: Loop) => number) => spread(loops.map(of).sort((a, b) => a - b))
    const strikes = Object.entries(Object.groupBy(loops, ({ strike }) => strike))
    console.log(
      `${loops.length} loops (${strikes.map(([strike, some]) => `${strike} ${some.length}`).join(', ')}): ` +
        `next epoch after ${times((loop) => loop.leadMs)}; next acknowledgement after ` +
        `${times((loop) => loop.acknowledgedMs)}; a loop took ${times((loop) => loop.tookMs)}`,
    )
    expect(loops).toHaveLength(LOOPS - FROM + 1)
  })
})
