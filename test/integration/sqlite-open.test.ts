/** Creating, opening, sharing and refusing the file of the SQLite store. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { faultOf } from '../../controller/adapters/sqlite/faults.ts'
import { MIGRATIONS } from '../../controller/adapters/sqlite/migrations.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { StoreFault } from '../../controller/ports/store.ts'
import { aBatch, aTask } from '../support/store-builders.ts'

const CHILD = fileURLToPath(new URL('./sqlite-child.ts', import.meta.url))
/** Root may write anywhere; a missing permission is tested as an ordinary user. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'headroom-sqlite-'))
  path = join(directory, STORE_FILE)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const modeOf = (file: string) => (statSync(file).mode & 0o777).toString(8)

async function makeStore(tasks = 1): Promise<void> {
  const store = createSqliteStore({ path })
  await store.commit(
    aBatch({ tasks: Array.from({ length: tasks }, (_, index) => aTask({ seq: index + 1 })) }),
  )
  await store.close()
}

/** Opens, expects a refusal, and returns its message. */
async function refusal(options: Parameters<typeof createSqliteStore>[0] = { path }): Promise<string> {
  const store = createSqliteStore({ busyTimeoutMs: 0, ...options })
  const fault = await store.load().then(
    () => new Error('the store opened'),
    (error: unknown) => error as Error,
  )
  await expect(store.commit(aBatch())).rejects.toThrow(fault.message)
  await expect(store.reads.task('x')).rejects.toThrow(fault.message)
  await store.close()
  expect(fault).toBeInstanceOf(StoreFault)
  expect(fault.message).not.toMatch(/\n/)
  return fault.message
}

/** Returns in one line why a store that opens cannot be loaded. */
async function loadFault(): Promise<string> {
  const store = createSqliteStore({ path })
  const fault = await store.load().then(
    () => new Error('the store loaded'),
    (error: unknown) => error as Error,
  )
  await store.close()
  expect(fault).toBeInstanceOf(StoreFault)
  expect(fault.message).not.toMatch(/\n/)
  return fault.message
}

describe('a file that does not exist yet', () => {
  it('is created with its directories, for this user alone', async () => {
    const dataDir = join(directory, 'deep', 'data')
    const lines: string[] = []
    const store = createSqliteStore({ dataDir, log: (line) => lines.push(line) })
    await store.load()
    expect(modeOf(join(directory, 'deep'))).toBe('700')
    expect(modeOf(dataDir)).toBe('700')
    for (const file of ['', '-wal', '-shm']) expect(modeOf(join(dataDir, STORE_FILE + file))).toBe('600')
    await store.close()
    expect(lines).toEqual([
      expect.stringMatching(/^made .*headroom\.db$/),
      expect.stringMatching(new RegExp(`schema 0 → ${MIGRATIONS.length}$`)),
    ])
    expect(existsSync(join(dataDir, `${STORE_FILE}-wal`))).toBe(false)
  })

  it('is created once: the second start logs nothing', async () => {
    await makeStore()
    const lines: string[] = []
    const store = createSqliteStore({ path, log: (line) => lines.push(line) })
    expect((await store.load()).openTasks).toHaveLength(1)
    await store.close()
    expect(lines).toEqual([])
  })

  it('is written in WAL mode', async () => {
    await makeStore()
    // Bytes 18 and 19 of the header: 2 is WAL.
    expect([...readFileSync(path).subarray(18, 20)]).toEqual([2, 2])
  })
})

describe('an unusable store is refused in one line that names it', () => {
  it('when a record is damaged in a valid page: the message requests a restore', async () => {
    await makeStore()
    const db = new Database(path)
    db.prepare(`update tasks set record = substr(record, 1, 40)`).run()
    db.close()
    expect(await loadFault()).toMatch(/headroom\.db is damaged or not a database \(.*\): restore a backup/)
  })

  it('when the file has a second hard link, under which another controller could open it', async () => {
    await makeStore()
    mkdirSync(join(directory, 'other'))
    const other = join(directory, 'other', STORE_FILE)
    linkSync(path, other)
    for (const each of [path, other])
      expect(await refusal({ path: each })).toBe(
        `${each} has 2 hard links, so another controller could open the same file: copy the file, and ` +
          'remove the links',
      )
    rmSync(other)
    await makeStore(0)
  })

  it('when the path is a directory', async () => {
    mkdirSync(path)
    expect(await refusal()).toBe(`${path} is a directory, but should be a file: move it away`)
  })

  it.skipIf(!existsSync('/proc/self'))('when its directory cannot be created', async () => {
    expect(await refusal({ dataDir: '/proc/none/below' })).toMatch(
      /the directory of \/proc\/none\/below\/headroom\.db cannot be created/,
    )
  })

  it('when a part of the path is a file', async () => {
    writeFileSync(join(directory, 'file'), '')
    expect(await refusal({ dataDir: join(directory, 'file') })).toMatch(
      /the directory of .*headroom\.db cannot be created .*use another data directory/,
    )
    expect(await refusal({ dataDir: join(directory, 'file', 'data') })).toMatch(
      /the directory of .*headroom\.db cannot be created/,
    )
  })

  it('when the directory is not writable', (context) => {
    if (spawnSync(process.execPath, ['--check', CHILD], NOBODY).status !== 0)
      return context.skip('another user cannot read this checkout')
    chmodSync(directory, 0o555)
    const child = spawnSync(process.execPath, [CHILD, 'hold', path], { ...NOBODY, encoding: 'utf8' })
    expect(child.stdout).toMatch(
      new RegExp(
        /^fault StoreFault: .*headroom\.db cannot be written \(EACCES.*give user ID \d+ /.source +
          /write permission/.source,
      ),
    )
    expect(child.status).toBe(3)
  })

  it('when the file is not a database', async () => {
    writeFileSync(path, 'these are not the pages you are looking for'.repeat(100))
    expect(await refusal()).toMatch(
      /headroom\.db is damaged or not a database \(SQLITE_NOTADB.*restore a backup, or move the file and/,
    )
  })

  it('when the file is damaged', async () => {
    await makeStore(200)
    const file = openSync(path, 'r+')
    for (let page = 1; page < statSync(path).size / 4096; page++)
      writeSync(file, Buffer.alloc(64, 0xa5), 0, 64, page * 4096)
    expect(await refusal()).toMatch(/headroom\.db is damaged or not a database .*restore a backup/)
  })

  it('when the database belongs to another program, which stays unchanged', async () => {
    new Database(path).exec('create table recipes (name text)').close()
    const before = readFileSync(path)
    expect(await refusal()).toMatch(/headroom\.db is a database of another program/)
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('when a newer version has written it, and stays unchanged', async () => {
    await makeStore()
    new Database(path).exec(`insert into schema_version values (99, 'from the future', 0)`).close()
    const before = readFileSync(path)
    expect(await refusal()).toContain(
      `written by a newer Headroom (schema 99; this version supports up to ${MIGRATIONS.length})`,
    )
    expect(readFileSync(path).equals(before)).toBe(true)
  })

  it('when options are invalid', () => {
    expect(() => createSqliteStore({})).toThrow(TypeError)
    expect(() => createSqliteStore({ path, dataDir: directory })).toThrow(TypeError)
    expect(() => createSqliteStore({ path, retainEvents: 0 })).toThrow(
      /retainEvents must be a whole number from 1, not 0/,
    )
    expect(() => createSqliteStore({ path, busyTimeoutMs: 1.5 })).toThrow(/busyTimeoutMs/)
    expect(() => createSqliteStore({ path, maxPages: -1 })).toThrow(/maxPages/)
  })
})

describe('an error of SQLite or the file system', () => {
  const wordsFor = (code: string) =>
    faultOf(Object.assign(new Error('first\nsecond'), { code }), '/data/headroom.db').message

  it.each([
    ['SQLITE_BUSY_SNAPSHOT', /^\/data\/headroom\.db is locked by another program .*stop that program/],
    ['ENOSPC', /^the disk is full: \/data\/headroom\.db could not be written/],
    [
      'SQLITE_IOERR_FSYNC',
      /^the disk failed on \/data\/headroom\.db \(SQLITE_IOERR_FSYNC: first second\): check the disk/,
    ],
    ['SQLITE_CORRUPT_INDEX', /^\/data\/headroom\.db is damaged/],
    ['EROFS', /^\/data\/headroom\.db cannot be written \(EROFS.*give user ID/],
    ['ESOMETHING', /^the store \/data\/headroom\.db failed \(ESOMETHING: first second\)$/],
  ])('becomes one readable line: %s', (code, words) => {
    expect(wordsFor(code)).toMatch(words)
  })

  it('keeps the original as its cause, and a store fault unchanged', () => {
    const original = new Error('no code')
    expect(faultOf(original, 'x')).toMatchObject({
      cause: original,
      message: 'the store x failed (unknown: no code)',
    })
    const ours = new StoreFault('ours')
    expect(faultOf(ours, 'x')).toBe(ours)
    expect(faultOf('thrown text', 'x').message).toMatch(/thrown text/)
  })
})

describe('a second controller on the same file', () => {
  const IN_USE = /headroom\.db is in use by another controller: stop it first/
  let child: ChildProcess | undefined
  afterEach(() => child?.kill('SIGKILL'))

  async function holdInAnotherProcess(): Promise<ChildProcess> {
    child = spawn(process.execPath, [CHILD, 'hold', path], { stdio: ['ignore', 'pipe', 'inherit'] })
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      expect(line).toBe('open')
      break
    }
    return child
  }

  it('is refused while another process uses it, and admitted once that process is killed', async () => {
    const holder = await holdInAnotherProcess()
    expect(await refusal()).toMatch(IN_USE)
    const gone = new Promise((resolve) => holder.once('exit', resolve))
    holder.kill('SIGKILL')
    await gone
    await makeStore()
  })

  it('is refused in a process that starts later', async () => {
    const store = createSqliteStore({ path })
    await store.load()
    const late = spawnSync(process.execPath, [CHILD, 'hold', path], { encoding: 'utf8' })
    expect(late.stdout).toMatch(IN_USE)
    expect(late.status).toBe(3)
    await store.commit(aBatch({ tasks: [aTask()] }))
    await store.close()
  })

  it('is refused in the same process, and through another name of the file', async () => {
    const store = createSqliteStore({ path })
    await store.load()
    symlinkSync(path, join(directory, 'link.db'))
    symlinkSync(directory, join(directory, 'there'))
    expect(await refusal()).toMatch(IN_USE)
    expect(await refusal({ path: join(directory, 'link.db') })).toMatch(IN_USE)
    expect(await refusal({ dataDir: join(directory, 'there') })).toMatch(IN_USE)
    await store.close()
  })

  it('waits for a controller that is just ending', async () => {
    const first = createSqliteStore({ path })
    await first.commit(aBatch({ tasks: [aTask()] }))
    const second = createSqliteStore({ path, busyTimeoutMs: 20_000 })
    const loaded = second.load()
    await first.close()
    expect((await loaded).openTasks).toHaveLength(1)
    await second.close()
  })

  it('may close a store twice, and a store that never opened', async () => {
    const store = createSqliteStore({ path })
    await Promise.all([store.close(), store.close()])
    await expect(store.commit(aBatch())).rejects.toThrow(/closed/)
    await expect(store.load()).rejects.toThrow(/closed/)
  })
})

describe('An invalid lock file', () => {
  it.each([
    [
      'a text',
      () => writeFileSync(`${path}.lock`, 'a text of 20 letters'),
      /\.lock is not a lock of Headroom \(20 bytes; it should be empty\)/,
    ],
    ['a folder', () => mkdirSync(`${path}.lock`), /\.lock is not a file/],
  ])('%s is named, and the store, which needs no restore, is not', async (_what, spoil, says) => {
    await makeStore()
    rmSync(`${path}.lock`, { force: true })
    spoil()
    const told = await refusal()
    expect(told).toMatch(says)
    expect(told).toMatch(
      /the store is unchanged; make sure that no controller runs, then remove .*headroom\.db\.lock$/,
    )
    expect(told).not.toContain('damaged')
    rmSync(`${path}.lock`, { recursive: true })
    const store = createSqliteStore({ path })
    expect((await store.load()).openTasks).toHaveLength(1)
    await store.close()
  })
})
