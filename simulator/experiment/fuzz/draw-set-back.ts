/**
 * Draws a set-back of the controller's store, from a separate random stream. An operator settles a silent
 * loss before `overMs`. No state from before `untilMs` returns after it: what an operator has corrected by
 * then stays so.
 */
import type { DurationMs } from '../../../protocol/units.ts'
import { LOSSES, STORE_POINTS } from '../../scenario/fault.ts'
import type { FuzzRandom } from './fuzz-random.ts'
import type { Entry } from './document.ts'

export interface SetBackShape {
  readonly fromMs: DurationMs
  readonly untilMs: DurationMs
  readonly overMs: DurationMs
  readonly taskIds: readonly string[]
}

const NAMED_PERCENT = 25
const SECOND_PERCENT = 30
const LONG_AWAY_PERCENT = 40
/** Between the loss and the operator's action that settles it. */
const NOTICED_AFTER_MS: DurationMs = 3_000
/**
 * Between the last fault and the operator's action that settles the quarantine, and between the two steps.
 */
const SETTLED_AFTER_MS: DurationMs = 10_000
const MAX_ATTEMPT = 4

export function drawSetBacks(dice: FuzzRandom, shape: SetBackShape): Entry[] {
  const count = dice.chance(SECOND_PERCENT) ? 2 : 1
  return Array.from({ length: count }, () => drawOne(dice, shape)).flat()
}

function drawOne(dice: FuzzRandom, { fromMs, untilMs, overMs }: SetBackShape): Entry[] {
  const at = dice.between(fromMs, untilMs - 1)
  const loss = dice.oneOf(['silent', ...LOSSES])
  const entry = {
    at: `${at}ms`,
    store_set_back: 'controller',
    ...howFar(dice, at),
    loss,
    ...absence(dice, overMs - at),
  }
  if (loss !== 'silent') return [entry]
  const settledAt = Math.min(
    overMs - 1,
    at + NOTICED_AFTER_MS + dice.oneOf([dice.below(10_000), dice.below(120_000)]),
  )
  const back =
    settledAt < untilMs && dice.chance(60) ? 1 + dice.below(Math.min(settledAt, 2 * (settledAt - at))) : 0
  return [entry, { at: `${settledAt}ms`, store_set_back: 'controller', back: `${back}ms`, loss: 'restored' }]
}

function howFar(dice: FuzzRandom, at: DurationMs): Entry {
  if (dice.chance(NAMED_PERCENT)) return { to: dice.oneOf(STORE_POINTS) }
  const ms = dice.oneOf([1 + dice.below(3_000), 1 + dice.below(20_000), 1 + dice.below(at)])
  return { back: `${Math.min(ms, at)}ms` }
}

function absence(dice: FuzzRandom, mostMs: DurationMs): Entry {
  return dice.chance(LONG_AWAY_PERCENT) ? { for: `${Math.min(mostMs, 1 + dice.below(60_000))}ms` } : {}
}

/**
 * At the end an operator settles every quarantined attempt: half of them become the attempts of tasks, the
 * others are ended.
 */
export function drawSettling(dice: FuzzRandom, { overMs, taskIds }: SetBackShape): Entry[] {
  const at = overMs + SETTLED_AFTER_MS
  const attempts = Array.from({ length: MAX_ATTEMPT }, (_, index) => index + 1)
  const each = (ids: readonly string[], atMs: DurationMs, verb: string, body: Entry): Entry[] =>
    ids.flatMap((id) =>
      attempts.map((n) => ({
        at: `${atMs}ms`,
        post: `/api/v1/attempts/${id}/${n}/${verb}`,
        body,
        expect: null,
      })),
    )
  return [
    ...each(dice.some(taskIds, 50), at, 'adopt', { owner: 'operator' }),
    ...each(taskIds, at + SETTLED_AFTER_MS, 'stop', {}),
  ]
}
