import { describe, expect, it } from 'vitest'
import { compareWithMark, type StorePosition } from '../../controller/adapters/sql/continuity.ts'
import type { FoundMark } from '../../controller/adapters/sql/mark-file.ts'
import type { FileMark } from '../../controller/adapters/sql/store-mark.ts'

const MARK: FileMark = { storeId: 'a'.repeat(16), epoch: 7, eventSeq: 4, commits: 9, chain: 'b'.repeat(64) }
const FOUND = { is: 'there', slot: { mark: MARK } } as FoundMark

function whyAt(eventSeq: number): string {
  const position: StorePosition = { ...MARK, eventSeq, isMarked: true, supersedes: null, lastEventAt: null }
  const compared = compareWithMark(
    { name: 'headroom.db', markFile: 'mark' },
    position,
    FOUND,
    () => MARK.chain,
  )
  return compared.is === 'broken' ? compared.why : 'complete'
}

describe('a store that is compared with its mark', () => {
  it('says how many acknowledged events are missing, and which', () => {
    expect([4, 3, 1].map(whyAt)).toEqual([
      'complete',
      'headroom.db went back to an earlier state: 1 acknowledged event is missing, 4 ' +
        '(since its beginning, epoch 7)',
      'headroom.db went back to an earlier state: 3 acknowledged events are missing, 2 to 4 ' +
        '(since its beginning, epoch 7)',
    ])
  })
})
