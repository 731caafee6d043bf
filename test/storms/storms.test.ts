/** Storms of kills (make test-storms): one short one in `make test`. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { count, quantile } from '../faults/fault-cluster.ts'
import { keep, runStorm, runsAgainIn } from './storm.ts'

const STORMS = count('STORMS_COUNT', 1)
/** An interrupted series continues with this storm. */
const FROM = count('STORMS_FROM', 1)
const SECONDS = count('STORMS_SECONDS', 20)
const KILLS = count('STORMS_KILLS', 4)
const TASKS = count('STORMS_TASKS', 30)
const SEED = process.env['STORMS_SEED'] ?? '1'
/** One line per storm. */
const LOG = process.env['STORMS_LOG'] ?? join(tmpdir(), `headroom-storms-${SEED}.jsonl`)
const TIMEOUT_MS = 1000 * SECONDS * 3 + 600_000
/**
 * From the broker's first accepted connection to the last server contact. A short storm has too few values
 * for a quantile.
 */
const RECONNECT_P95_MS = 2_000
const MIN_SAMPLES = 20

describe.skipIf(whyNoNatsServer() !== null)('storms of kills', () => {
  const reconnects: number[] = []

  it.each(Array.from({ length: STORMS - FROM + 1 }, (_, i) => FROM + i))(
    `number %i of ${STORMS}, seed ${SEED}: no lost task, no double run, and a reason for every end`,
    async (number) => {
      const verdict = await runStorm({
        seed: `${SEED}/${number}`,
        seconds: SECONDS,
        kills: KILLS,
        tasks: TASKS,
        evidence: `${LOG}.${number}`,
      })
      keep(LOG, { number, seed: SEED, ...verdict })
      reconnects.push(...verdict.reconnectMs)
      console.log(
        `storm ${number}: ` +
          `${JSON.stringify({ ...verdict, reconnectMs: verdict.reconnectMs.map(Math.round) })}`,
      )
      const { lost, twice, withoutReason } = verdict
      expect(verdict.attempts, 'attempts that ran').toBeGreaterThanOrEqual(verdict.acknowledged / 2)
      expect(
        { lost, twice, withoutReason },
        `repeat: make test-storms STORMS_SEED=${SEED} STORMS_FROM=${number} STORMS_COUNT=${number}`,
      ).toEqual({
        lost: [],
        twice: [],
        withoutReason: [],
      })
    },
    TIMEOUT_MS,
  )

  it('every server reconnects within 2 s of the return of the broker, at p95', () => {
    const [p50, p95] = [quantile(reconnects, 0.5), quantile(reconnects, 0.95)]
    console.log(
      `${reconnects.length} broker kills: last server heard after p50 ${p50.toFixed(0)} ms, p95 ` +
        `${p95.toFixed(0)} ms`,
    )
    if (reconnects.length >= MIN_SAMPLES) expect(p95).toBeLessThanOrEqual(RECONNECT_P95_MS)
    expect(reconnects.length).toBeGreaterThan(0)
  })
})

describe('the judge of a storm', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headroom-ticks-'))
  const write = (name: string, ...lines: readonly (number | 'done')[]): void =>
    writeFileSync(join(folder, name), `${lines.join('\n')}\n`)

  it('detects two overlapping attempts, and an attempt after a completion that could be reported', () => {
    write('t1.a.x', 10e6, 20e6, 'done')
    write('t3.a.x', 10e6, 20e6)
    write('t3.b.x', 30e6, 40e6, 'done')
    write('t6.a.x', 10e6, 30e6)
    write('t6.b.x', 20e6, 40e6)
    write('t9.b.x', 10e6, 20e6, 'done')
    write('t9.a.x', 9_000e6)
    // Completed while their server a was stopped: t12 is requeued, t13 waits for its server.
    for (const task of ['t12', 't13']) {
      write(`${task}.a.x`, 10e6, 20e6, 'done')
      write(`${task}.b.x`, 9_000e6)
    }
    // The server was awake again before the second attempt.
    write('t15.a.x', 10e6, 20e6, 'done')
    write('t15.b.x', 11_000e6)
    const { twice, repeated } = runsAgainIn(folder, [{ server: 'a', from: 15, to: 10_000 }])
    expect(twice.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      't13 again after it was done',
      't15 again after it was done',
      't6 at once',
      't9 again after it was done',
    ])
    expect(repeated).toEqual(['t12'])
  })
})
