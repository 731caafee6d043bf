/**
 * A separate process that has the store open, for tests that kill it, lock it out or fill its disk. It prints
 * each event on stdout, one per line. Arguments: the action, and the store's file.
 */
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import { aBatch, aTask } from '../support/store-builders.ts'

/** More than any test lets it write; still a limit. */
const MAX_COMMITS = 100_000

const [, , what, path = ''] = process.argv
const say = (line: string) => process.stdout.write(`${line}\n`)
const store = createSqliteStore({ path, busyTimeoutMs: 0 })

try {
  const state = await store.load()
  say('open')
  if (what === 'commit') await commitOn(state.marks.nextTaskSeq)
} catch (error) {
  say(`fault ${String(error)}`)
  say(`stored ${await countStored()}`)
  process.exit(3)
}

/** One task after the other; prints its number as soon as the store has acknowledged it. */
async function commitOn(firstSeq: number): Promise<void> {
  for (let seq = firstSeq; seq < firstSeq + MAX_COMMITS; seq++) {
    const marks = { epoch: 1, nextTaskSeq: seq + 1, nextEventSeq: 1, nextDecision: 1 }
    await store.commit(aBatch({ tasks: [aTask({ seq })], marks }))
    say(`${seq}`)
  }
}

async function countStored(): Promise<number> {
  return store.load().then(
    (state) => state.openTasks.length,
    () => -1,
  )
}
