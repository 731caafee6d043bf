/**
 * The mark of a standby: it moves with the commits that the standby follows, so that a standby too refuses a
 * store that has lost some of them (docs/decisions/0176). It has a file of its own, because another thread
 * may become the leader meanwhile and write the mark of the leader.
 */
import type pg from 'pg'
import { refusal } from '../sql/continuity.ts'
import { openMarkFile, readMark, type FoundMark, type MarkFile } from '../sql/mark-file.ts'
import type { FileMark } from '../sql/store-mark.ts'
import { compareStore, readPosition } from './position.ts'

/** The one of this host that has seen more: of its last term, or of what it has followed. */
export function newestMark(markBase: string): FoundMark {
  const [own, followed] = [readMark(markBase), readMark(standbyBase(markBase))]
  if (followed.is !== 'there' || own.is === 'damaged') return own
  if (own.is === 'absent') return followed
  const [a, b] = [own.slot.mark, followed.slot.mark]
  return (a.epoch - b.epoch || a.commits - b.commits) < 0 ? followed : own
}

export interface StandbyMark {
  /** Everything up to this extent was acknowledged. */
  put(mark: FileMark): void
  close(): void
}

/**
 * @param name of the store, for messages
 * @param log one line if the store lacks what the mark has, which then stays: this controller will not lead
 */
export async function openStandbyMark(
  client: pg.ClientBase,
  name: string,
  markBase: string,
  log: (line: string) => void,
): Promise<StandbyMark> {
  const found = newestMark(markBase)
  const continuity = await compareStore(client, name, markBase, await readPosition(client), found)
  if (continuity.is === 'broken') {
    log(`this standby cannot take over: ${refusal(continuity)}`)
    return { put: () => {}, close: () => {} }
  }
  let file: MarkFile | null = null
  let last: FileMark | null = null
  return {
    put: (mark) => {
      if (mark === last) return
      last = mark
      // A host that is lost forgets the latest: the mark is then behind, and that is sound.
      file ??= openMarkFile(standbyBase(markBase), mark, 1, Date.now, false)
      file.put(mark)
    },
    close: () => file?.close(),
  }
}

function standbyBase(markBase: string): string {
  return `${markBase}.standby`
}
