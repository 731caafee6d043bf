/** A store that went back to an earlier state is refused, and an operator can continue. */
import { hash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { NO_CHANGE, noAccessChanges, type StoredState } from '../../controller/ports/store.ts'
import { headroom } from '../support/headroom-command.ts'
import { aBatch, anAudit, anEvent, aTask } from '../support/store-builders.ts'

const BEHIND =
  /to an earlier state: 2 acknowledged events are missing, 3 to 4 \(since 2025-[^ ]+Z, epoch 7\)\. Put back/

let folder: string
let data: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headroom-mark-'))
  data = join(folder, 'data')
  path = join(data, STORE_FILE)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const marks = (nextEventSeq: number, epoch = 7) => ({ epoch, nextTaskSeq: 9, nextEventSeq, nextDecision: 1 })

/**
 * Events 1 and 2 are in the file, 3 and 4 in its log, as after a kill; `early` is the folder before these.
 */
async function killed(): Promise<{ readonly early: string }> {
  const first = createSqliteStore({ path })
  await first.commit(
    aBatch({ tasks: [aTask({ seq: 1 })], events: [anEvent(1), anEvent(2)], marks: marks(3) }),
  )
  await first.close()
  const early = join(folder, 'early')
  cpSync(data, early, { recursive: true })
  const second = createSqliteStore({ path })
  await second.commit(aBatch({ tasks: [aTask({ seq: 2 })], events: [anEvent(3)], marks: marks(4) }))
  await second.commit(aBatch({ tasks: [aTask({ seq: 3 })], events: [anEvent(4)], marks: marks(5) }))
  const copy = join(folder, 'copy')
  cpSync(data, copy, { recursive: true })
  await second.close()
  rmSync(data, { recursive: true })
  cpSync(copy, data, { recursive: true })
  return { early }
}

/** @returns the content of the store, or the line that refuses it. */
async function opened(options: { readonly acceptLoss?: string } = {}): Promise<StoredState | string> {
  const store = createSqliteStore({ path, busyTimeoutMs: 0, ...options })
  const result = await store.load().catch((error: unknown) => (error as Error).message)
  await store.close()
  return result
}

const markIn = (line: StoredState | string): string =>
  /--accept-loss (\S+)\.$/.exec(String(line))?.[1] ?? 'none'
const filesOf = (directory: string) =>
  readdirSync(directory)
    // An empty log is equal to a missing one.
    .filter(
      (name) => !name.includes('.lock') && !name.endsWith('-shm') && statSync(join(directory, name)).size > 0,
    )
    .map((name) => [name, hash('sha256', readFileSync(join(directory, name)))])

describe('a store with a log after a kill', { timeout: 300_000 }, () => {
  it('is opened with all its content', async () => {
    await killed()
    expect(await opened()).toMatchObject({ mark: { epoch: 7, eventSeq: 4 }, recovery: null })
  })

  it.each<readonly [string, () => void]>([
    ['is gone', () => rmSync(`${path}-wal`)],
    ['is empty', () => writeFileSync(`${path}-wal`, '')],
    [
      'has one flipped bit in its first frame',
      () => {
        const bytes = readFileSync(`${path}-wal`)
        bytes[600] = (bytes[600] ?? 0) ^ 1
        writeFileSync(`${path}-wal`, bytes)
      },
    ],
  ])('is refused when the log %s, and its files stay unchanged', async (_, damage) => {
    await killed()
    damage()
    const before = filesOf(data)
    const line = await opened()
    expect(line).toMatch(BEHIND)
    expect(line).toMatch(
      /restore a backup \(headroom restore\), or start once with --accept-loss 7-4-\d+-[0-9a-f]{12}\.$/,
    )
    expect(filesOf(data)).toEqual(before)
  })

  it('is refused when an older file was copied over it', async () => {
    const { early } = await killed()
    for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true })
    cpSync(join(early, STORE_FILE), path)
    expect(await opened()).toMatch(BEHIND)
  })

  it('is refused when only changes without events are missing: audit entries, tokens, an epoch', async () => {
    await killed()
    await opened()
    const store = createSqliteStore({ path })
    await store.commit({
      ...NO_CHANGE,
      access: { ...noAccessChanges(), audits: [anAudit()] },
      marks: marks(5),
    })
    const copy = readFileSync(path)
    await store.close()
    writeFileSync(path, copy)
    expect(await opened()).toMatch(/no event is missing, but 1 acknowledged commits are/)
  })

  it('is refused when its history is not the acknowledged one', async () => {
    await killed()
    await opened()
    const db = new Database(path)
    db.exec(
      'update events set hash = zeroblob(32) where seq = 4; update event_chain set head_hash = zeroblob(32)',
    )
    db.close()
    expect(await opened()).toMatch(
      /has another history than was acknowledged: its event 4 is not the one of the mark/,
    )
  })

  it('is refused next to the mark of another store', async () => {
    await killed()
    const mark = readFileSync(`${path}.mark`)
    rmSync(data, { recursive: true })
    const store = createSqliteStore({ path })
    await store.commit(aBatch({ events: [1, 2, 3, 4].map((seq) => anEvent(seq)), marks: marks(5) }))
    for (let i = 0; i < 9; i++) await store.commit(aBatch({ marks: marks(5) }))
    await store.close()
    writeFileSync(`${path}.mark`, mark)
    expect(await opened()).toMatch(/is another store than the one of its mark/)
  })

  it('is opened after a crash between commit and mark, possibly with unacknowledged changes', async () => {
    await killed()
    const mark = readFileSync(`${path}.mark`)
    const store = createSqliteStore({ path })
    await store.commit(aBatch({ events: [anEvent(5)], marks: marks(6) }))
    await store.close()
    writeFileSync(`${path}.mark`, mark)
    expect(await opened()).toMatchObject({ mark: { eventSeq: 5 } })
  })

  it('is opened when a write of the mark was cut off: the previous mark is still there', async () => {
    await killed()
    const bytes = readFileSync(`${path}.mark`)
    const newest = bytes.toString('latin1', 0, 4096).includes('"event":4') ? 0 : 4096
    writeFileSync(`${path}.mark`, bytes.fill(0, newest, newest + 100))
    expect(await opened()).toMatchObject({ mark: { eventSeq: 4 } })
  })
})

describe('a store without its mark', { timeout: 300_000 }, () => {
  it.each<readonly [string, string, () => void]>([
    ['is gone', 'is gone', () => rmSync(`${path}.mark`)],
    ['is damaged', 'is damaged', () => writeFileSync(`${path}.mark`, 'x'.repeat(8192))],
  ])('is refused when the mark %s, until an operator accepts the loss', async (_, words, lose) => {
    await killed()
    lose()
    const line = await opened()
    expect(line).toMatch(new RegExp(`headroom\\.db\\.mark ${words}, so that it is not known`))
    expect(await opened({ acceptLoss: markIn(line) })).toMatchObject({
      recovery: { reason: 'loss_accepted' },
    })
    expect(await opened()).toMatchObject({ mark: { eventSeq: 4 } })
  })

  it('of an earlier version gets a mark at its first start', async () => {
    await killed()
    await opened()
    const db = new Database(path)
    db.exec(`drop table epochs; drop table history; drop table retention_clock; drop table retention_marks;
      drop table secrets;
      delete from schema_version where version > 8;
      alter table tasks drop column sum; alter table nodes drop column sum;
      alter table "groups" drop column sum; alter table config_revisions drop column sum;
      alter table tokens drop column sum; alter table submission_keys drop column sum`)
    db.close()
    rmSync(`${path}.mark`)
    expect(await opened()).toMatchObject({ mark: { epoch: 7, eventSeq: 4 }, recovery: null, epochs: [] })
    expect(readFileSync(`${path}.mark`, 'utf8')).toContain('"event":4')
    expect((statSync(`${path}.mark`).mode & 0o777).toString(8)).toBe('600')
  })
})

describe('the option --accept-loss', { timeout: 300_000 }, () => {
  it('starts the store in recovery, with an epoch far above that of its mark, once', async () => {
    await killed()
    rmSync(`${path}-wal`)
    const mark = markIn(await opened())
    const accepted = await opened({ acceptLoss: mark })
    expect(accepted).toMatchObject({ mark: { eventSeq: 2 }, recovery: { reason: 'loss_accepted' } })
    expect((accepted as StoredState).marks.epoch).toBeGreaterThan(1_000_007)
    expect(await opened({ acceptLoss: mark })).toBe(
      `There is no loss to accept: the store matches its mark. Start without --accept-loss ${mark}.`,
    )
    expect(await opened()).toMatchObject({ recovery: { reason: 'loss_accepted' } })
    expect((await verifyStore(path)).problems).toEqual([])
  })

  it('with another mark changes nothing', async () => {
    await killed()
    rmSync(`${path}-wal`)
    const before = filesOf(data)
    expect(await opened({ acceptLoss: '7-9-9-000000000000' })).toMatch(
      /3 to 4 .* --accept-loss 7-9-9-000000000000 does not match the mark\. Put/,
    )
    expect(filesOf(data)).toEqual(before)
  })

  it('is an option of headroom serve, which refuses with the same line as headroom verify', async () => {
    await killed()
    rmSync(`${path}-wal`)
    const env = { CONTROLLER_DATA_DIR: data, CONTROLLER_HTTP_PORT: '0', LOG_LEVEL: 'error' }
    const refused = await headroom(['serve'], { env })
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringMatching(/^headroom: [^\n]+\n$/)])
    const verified = await headroom(['verify', '--data-dir', data])
    expect(verified.code).toBe(1)
    expect(`headroom: ${verified.stdout.replace(/^mark: /, '')}`).toBe(refused.stderr)
    const other = await headroom(['serve', '--accept-loss', 'x'], { env })
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringContaining('--accept-loss x does not match the mark'),
    ])
  })
})

describe('headroom restore', { timeout: 300_000 }, () => {
  const restored = (backup: string, wallMs = 0) =>
    restoreStore({ backup, path, isForced: true, at: new Date(wallMs), busyTimeoutMs: 0 })

  it('leaves a store in recovery, with a new epoch above every known one', async () => {
    const { early } = await killed()
    const backup = join(early, STORE_FILE)
    const epochs: number[] = []
    for (const wallMs of [0, 60_000]) {
      await restored(backup, wallMs)
      expect((await verifyStore(path)).problems).toEqual([])
      const state = await opened()
      expect(state).toMatchObject({
        mark: { eventSeq: 2 },
        recovery: { reason: 'restored', sinceWallMs: wallMs },
      })
      epochs.push((state as StoredState).marks.epoch)
      rmSync(data, { recursive: true })
      mkdirSync(data)
    }
    expect(epochs[0]).toBeGreaterThanOrEqual(7 + 10_000)
    expect(epochs[1]).toBeGreaterThan(epochs[0] as number)
  })

  it('can be undone: the replaced store still matches its mark', async () => {
    const { early } = await killed()
    const { aside } = await restored(join(early, STORE_FILE))
    for (const suffix of ['', '-wal']) {
      rmSync(`${path}${suffix}`, { force: true })
      if (existsSync(`${aside}${suffix}`)) cpSync(`${aside}${suffix}`, `${path}${suffix}`)
    }
    expect(await opened()).toMatchObject({ mark: { epoch: 7, eventSeq: 4 }, recovery: null })
  })

  it('differs from a manual copy, which is refused, also after the next start', async () => {
    const { early } = await killed()
    await restored(join(early, STORE_FILE))
    await opened()
    cpSync(join(early, STORE_FILE), path)
    expect(await opened()).toMatch(
      /earlier state: no event is missing, but \d+ acknowledged commits are \(since .*epochs 7 to \d+\)/,
    )
  })

  it('prints the loss against store and mark with --dry-run, and changes nothing', async () => {
    const { early } = await killed()
    const backup = join(early, STORE_FILE)
    const before = filesOf(data)
    const whole = await headroom(['restore', backup, '--data-dir', data, '--dry-run'])
    expect([whole.code, whole.stderr]).toEqual([0, ''])
    expect(whole.stdout).toMatch(
      new RegExp(
        /^backup .*epoch 7, last event 2 at 2025-.*\nstore .*epoch 7, last event 4 at .*\n/.source +
          /mark {4}7-4-\d+-[0-9a-f]{12}\n/.source,
      ),
    )
    expect(whole.stdout).toContain('lost    2 events, 3 to 4\n')
    expect(whole.stdout).toContain(
      'lost    2 tasks submitted since the backup\n          task-2 pending train 2\n' +
        '          task-3 pending train 3\n',
    )
    expect(whole.stdout).toMatch(/nothing was changed\n$/)
    expect(filesOf(data)).toEqual(before)
    rmSync(`${path}-wal`)
    writeFileSync(path, 'no database')
    const damaged = await headroom(['restore', backup, '--data-dir', data, '--dry-run'])
    expect(damaged.stdout).toMatch(/store {3}cannot be read: .*damaged or not a database/)
    expect(damaged.stdout).toContain('lost    2 events, 3 to 4\n')
  })
})

describe('a flipped bit that no check of the file finds', { timeout: 300_000 }, () => {
  it.each([
    [
      'the id of a task',
      "update tasks set id = 'task-X', record = replace(record, 'task-1', 'task-X') where seq = 1",
    ],
    [
      'a value in the record of a task',
      "update tasks set record = replace(record, '24000', '24001') where seq = 1",
    ],
    ['a task that counts as ended', 'update tasks set is_final = 1 where seq = 1'],
  ])('is found at the start: %s', async (_, sql) => {
    await killed()
    await opened()
    const db = new Database(path)
    expect(db.exec(sql).pragma('quick_check(1)', { simple: true })).toBe('ok')
    db.close()
    expect(await opened()).toMatch(
      /is damaged or not a database \(the row 1 of table tasks is not as it was written\): restore a backup/,
    )
  })
})
