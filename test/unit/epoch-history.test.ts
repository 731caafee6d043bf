/**
 * Whether a store contains what a node knows, derived from the controller of each epoch (docs/protocol.md, "A
 * store that went back to an earlier state").
 */
import { expect, it } from 'vitest'
import { epochAfterLoss } from '../../controller/model/epoch-after-loss.ts'
import { EpochHistory } from '../../controller/state/epoch-history.ts'
import type { EpochRecord } from '../../controller/ports/store.ts'

const RAISED = 5_000_000
const own = (epoch: number) => ({ epoch, controller: 'own', lastEventSeq: 100 })

function historyOf(...starts: EpochRecord[]): EpochHistory {
  const history = new EpochHistory()
  history.load(starts.slice(0, -1))
  history.begin(starts.at(-1) as EpochRecord, false)
  return history
}

it('An epoch of another process is unknown even if its number and event are in the store', () => {
  const history = historyOf(
    { epoch: 2, firstEventSeq: 1, controller: 'first' },
    { epoch: 3, firstEventSeq: 40, controller: 'after the set-back' },
    { epoch: 4, firstEventSeq: 60, controller: 'own' },
  )
  expect(history.judge({ epoch: 3, controller: 'before the set-back', event_seq: 46 }, own(4))).toBe(
    'other_controller',
  )
  expect(history.judge({ epoch: 3, controller: 'after the set-back', event_seq: 46 }, own(4))).toBe('known')
  expect(history.judge({ epoch: 3, event_seq: 46 }, own(4))).toBe('known')
})

it('A restore also covers an earlier silent loss, even if its backup was made in between', () => {
  const history = historyOf(
    { epoch: 1, firstEventSeq: 1, controller: 'a' },
    { epoch: 2, firstEventSeq: 30, controller: 'b' },
    { epoch: RAISED, firstEventSeq: 40, controller: 'own' },
  )
  expect(history.judge({ epoch: 1, controller: 'a', event_seq: 35 }, own(RAISED))).toBe('accepted_loss')
  expect(history.judge({ epoch: 2, controller: 'lost', event_seq: 35 }, own(RAISED))).toBe('accepted_loss')
  expect(history.judge({ epoch: 3, controller: 'lost', event_seq: 35 }, own(RAISED))).toBe('accepted_loss')
  expect(history.judge({ epoch: 2, controller: 'b', event_seq: 39 }, own(RAISED))).toBe('known')
})

it('An epoch that was claimed and never recorded does not accept a loss', () => {
  const history = historyOf(
    { epoch: 1, firstEventSeq: 1, controller: 'a' },
    { epoch: 2, firstEventSeq: 4, controller: 'after the set-back' },
    { epoch: 4, firstEventSeq: 6, controller: 'own' },
  )
  expect(history.judge({ epoch: 2, controller: 'before the set-back', event_seq: 5 }, own(4))).toBe(
    'other_controller',
  )
  expect(history.judge({ epoch: 3, controller: 'never recorded', event_seq: 6 }, own(4))).toBe(
    'other_controller',
  )
})

it('A loss accepted before the first epoch of the store is still accepted after a restart', () => {
  const history = historyOf({ epoch: RAISED, firstEventSeq: 1 }, { epoch: RAISED + 1, firstEventSeq: 5 })
  expect(history.judge({ epoch: 7, controller: 'lost', event_seq: 20 }, own(RAISED + 1))).toBe(
    'accepted_loss',
  )
})

it('A second restore of one backup gets a higher epoch than the first restore', () => {
  const at = Date.parse('2026-11-23T12:00:00Z')
  const first = epochAfterLoss(3, at, (limit) => limit - 1)
  expect(epochAfterLoss(3, at + 1, () => 0)).toBeGreaterThan(first)
  expect(epochAfterLoss(first, at - 86_400_000, () => 0)).toBeGreaterThan(first)
})
