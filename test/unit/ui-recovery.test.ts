import { expect, test } from 'vitest'
import type { RecoveryBody } from '../../controller/api/tasks/attempt-schema.ts'
import {
  aheadWords,
  attemptName,
  vramWords,
  recoverySentence,
  statedOwner,
} from '../../ui/format/recovery.ts'

const AHEAD: RecoveryBody['nodes_ahead'][number] = {
  ...{
    node_id: 'id',
    name: 'n1',
    reason: 'missing_events',
    epoch: 2,
    controller: null,
    event_seq: 9,
    since: '',
  },
}
const CALM: RecoveryBody = {
  ...{
    placements_paused: null,
    recovery: null,
    nodes_awaited_since_start: [],
    nodes_heard: 3,
    nodes_ahead: [],
  },
  ...{ store: { epoch: 2, controller: 'c', event_seq: 8 }, result_unknown: [], quarantined_attempts: 0 },
}

test('The state of the recovery is one sentence that names the next step', () => {
  const restored = { reason: 'restored', since: '', nodes_awaited: ['a'] } as const
  const said = [
    CALM,
    { ...CALM, quarantined_attempts: 1 },
    { ...CALM, quarantined_attempts: 2 },
    { ...CALM, nodes_ahead: [AHEAD] },
    { ...CALM, placements_paused: 'AWAITING_NODES', nodes_awaited_since_start: ['a', 'b'] },
    { ...CALM, placements_paused: 'RECOVERY', recovery: restored },
    {
      ...CALM,
      placements_paused: 'RECOVERY',
      recovery: { ...restored, reason: 'loss_accepted', nodes_awaited: ['a', 'b'] },
    },
    { ...CALM, placements_paused: 'STORE_BEHIND', recovery: restored, nodes_ahead: [AHEAD, AHEAD] },
  ] satisfies readonly RecoveryBody[]
  expect(said.map(recoverySentence)).toEqual([
    'No recovery is in progress. Tasks are placed as usual.',
    'No recovery is in progress. Tasks are placed as usual. 1 quarantined attempt is waiting to be ' +
      'adopted or stopped.',
    'No recovery is in progress. Tasks are placed as usual. 2 quarantined attempts are waiting to ' +
      'be adopted or stopped.',
    '1 of 3 nodes has events that are missing from the store. It receives no commands, and tasks are ' +
      'placed on the other nodes.',
    'The controller has just started. No task is placed until 2 nodes have reported, or until 15 s have ' +
      'passed.',
    'The controller is in recovery because the store was restored. No task is placed, requeued or ' +
      'declared lost until 1 more node has reported.',
    'The controller is in recovery because a loss of data was accepted. No task is placed, requeued ' +
      'or declared lost until 2 more nodes have reported.',
    'The store is behind: 2 of 3 nodes have events that are missing from it. No task is placed, requeued ' +
      'or declared lost.',
  ])
})

test('An unknown property of an attempt is distinct from an empty one', () => {
  const record = { name: 'train', owner: 'ada', command: null }
  expect(statedOwner({ record })).toBe('ada')
  expect(statedOwner({ record: { ...record, owner: null } })).toBe('none reported')
  expect(statedOwner({ record: null })).toBe('—')
  expect(attemptName({ record, task_id: 'id' })).toBe('train')
  expect(attemptName({ record: null, task_id: 'id' })).toBe('id')
  expect(aheadWords(AHEAD)).toBe('It has events of epoch 2 that are missing from the store.')
  expect(vramWords({ gpus: [0, 2], vram_mib: 1_000 })).toBe('2 × 1,000 MiB on GPU 0, 2')
})
