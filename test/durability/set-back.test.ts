/**
 * Complete data folders set back under running tasks (make test-set-back): one of each kind in `make test`.
 */
import { describe, expect, it } from 'vitest'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { figure } from './controller-on.ts'
import { setBackOnce, WAYS_OUT, type SetBackKind, type WayOut } from './set-back.ts'

const SEED = figure('SET_BACK_SEED', 1)
/** Number of the first case of each kind, to continue an interrupted run. */
const FROM = figure('SET_BACK_FROM', 0)
const COUNTS = { within: figure('SET_BACK_WITHIN', 1), across: figure('SET_BACK_ACROSS', 1) }
/** The promise is two heartbeats; `make test-set-back` enforces it, and `make test` only prints the time. */
const ALARM_WITHIN_MS = figure('SET_BACK_ALARM_WITHIN_MS', Infinity)
const TIMEOUT_MS = 300_000
/** Losses of the store if the recovery accepts a loss: at least the most recently submitted tasks. */
const LATE_TASKS = 3

/** The two cases of `make test` are the two with a loss. */
const cases = (['within', 'across'] as const).flatMap((kind, shift) =>
  Array.from({ length: Math.max(0, COUNTS[kind] - FROM) }, (_, i): readonly [SetBackKind, number, WayOut] => {
    const number = FROM + i
    return [kind, number, WAYS_OUT[(number + 1 + shift) % WAYS_OUT.length] as WayOut]
  }),
)

describe.skipIf(whyNoNatsServer() !== null)(
  'a data folder that is set back with its mark under running tasks',
  () => {
    it.each(cases)(
      '%s epochs, number %i, way out "%s": STORE_BEHIND, and no kill, double run or reused epoch',
      async (kind, number, wayOut) => {
        const verdict = await setBackOnce({ kind, wayOut, seed: `${SEED}/${kind}/${number}` })
        console.log(`${kind} ${number}, ${wayOut} (seed ${SEED}): ${JSON.stringify(verdict)}`)
        const { alarmAfterMs, reasons, silentWhileBehind, silentAfter, twice, epochs, wasObeyed, pause } =
          verdict
        expect(alarmAfterMs).toBeLessThanOrEqual(ALARM_WITHIN_MS)
        expect(reasons).toHaveLength(3)
        if (kind === 'within') expect(new Set(reasons)).toEqual(new Set(['missing_events']))
        else for (const reason of reasons) expect(['other_controller', 'higher_epoch']).toContain(reason)
        expect({ silentWhileBehind, silentAfter, twice, wasObeyed, pause }).toEqual({
          silentWhileBehind: [],
          silentAfter: [],
          twice: [],
          wasObeyed: false,
          pause: 'STORE_BEHIND',
        })
        expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b))
        if (wayOut === 'newer') expect(verdict).toMatchObject({ adopted: 0, recoveries: [] })
        else expect(verdict).toMatchObject({ adopted: LATE_TASKS, recoveries: ['RECOVERY', null] })
      },
      TIMEOUT_MS,
    )
  },
)
