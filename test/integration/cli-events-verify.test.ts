import { join } from 'node:path'
import Database from 'better-sqlite3'
import { beforeAll, describe, expect, it } from 'vitest'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { aBatch, anEvent } from '../support/store-builders.ts'

describe('headroom events verify', { timeout: 300_000 }, () => {
  const folder = temporaryFolder()
  const file = join(folder, STORE_FILE)

  beforeAll(async () => {
    const store = createSqliteStore({ dataDir: folder })
    const marks = { epoch: 1, nextTaskSeq: 1, nextEventSeq: 11, nextDecision: 1 }
    await store.commit(
      aBatch({ events: Array.from({ length: 10 }, (_, index) => anEvent(index + 1)), marks }),
    )
    await store.close()
  })

  it('reports an intact log with its number of events, and otherwise the first changed event', async () => {
    const whole = await headroom(['events', 'verify'], { env: { CONTROLLER_DATA_DIR: folder } })
    expect(whole).toMatchObject({ code: 0, stderr: '' })
    const [, noted = ''] =
      /^\S+headroom\.db: intact: 10 events, 1 to 10; record this elsewhere: (10:[0-9a-f]{64})\n$/.exec(
        whole.stdout,
      ) ?? []
    expect(await headroom(['events', 'verify', file, '--noted', noted])).toMatchObject({ code: 0 })
    const other = `9:${noted.slice(3)}`
    expect(await headroom(['events', 'verify', file, '--noted', noted, '--noted', other])).toMatchObject({
      code: 1,
      stdout: `${file}: broken at event 9: its hash differs from the noted one\n`,
    })
    const db = new Database(file)
    db.exec(`update events set data = '{}' where seq = 7`)
    db.close()
    const broken = await headroom(['events', 'verify', folder, '--json'])
    expect(broken.code).toBe(1)
    expect(JSON.parse(broken.stdout)).toMatchObject({ file, intact: false, broken_seq: 7 })
  })

  it.each([
    [['nowhere'], 1, 'nowhere does not exist'],
    [['--noted', '7'], 2, 'a colon'],
  ])('with %j exits with %i and one line with the reason', async (args, code, why) => {
    const ended = await headroom(['events', 'verify', ...args], { env: { CONTROLLER_DATA_DIR: folder } })
    expect(ended.code).toBe(code)
    expect(ended.stderr.trim().split('\n')).toHaveLength(1)
    expect(ended.stderr).toContain(why)
  })
})
