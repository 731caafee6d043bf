/** Failures of the SQLite store: no change is acknowledged that is not on disk. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createCommitQueue } from '../../controller/adapters/sql/commit-queue.ts'
import { encodeBatch } from '../../controller/adapters/sql/rows.ts'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { StoreFault, type Batch, type Store, type TaskRecord } from '../../controller/ports/store.ts'
import { aBatch, aFinalTask, anEvent, aTask, eventQuery, finishedQuery } from '../support/store-builders.ts'

const CHILD = fileURLToPath(new URL('./sqlite-child.ts', import.meta.url))

let directory: string
let path: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'headroom-sqlite-'))
  path = join(directory, STORE_FILE)
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

async function storedSeqs(): Promise<number[]> {
  const store = createSqliteStore({ path })
  const { openTasks } = await store.load()
  await store.close()
  return openTasks.map((task) => task.seq)
}

/** Commits the batches without waiting in between. */
async function commitAll(store: Store, batches: readonly Batch[]) {
  const outcomes = await Promise.allSettled(batches.map((batch) => Promise.resolve(store.commit(batch))))
  return outcomes.map((outcome) => (outcome.status === 'fulfilled' ? 'durable' : (outcome.reason as Error)))
}

describe('a batch that fails half-way', () => {
  /** The event with number 666 cannot be stored; by then the tasks of its batch are written. */
  async function makeStoreWithTrap(): Promise<Store> {
    await createSqliteStore({ path }).close()
    const trap =
      'create trigger trap before insert on events when new.seq = 666 begin select raise(abort, ' +
      `'injected'); end`
    const opened = createSqliteStore({ path })
    await opened.load()
    await opened.close()
    new Database(path).exec(trap).close()
    return createSqliteStore({ path })
  }

  it('leaves no trace and ends all writing; reads continue', async () => {
    const store = await makeStoreWithTrap()
    await store.commit(aBatch({ tasks: [aFinalTask({ seq: 1 }), aTask({ seq: 2 })], events: [anEvent(1)] }))
    const before = await store.load()
    const bad = aBatch({
      tasks: [aTask({ seq: 2, name: 'changed' }), aTask({ seq: 3 })],
      events: [anEvent(2), anEvent(666)],
    })
    await expect(store.commit(bad)).rejects.toThrow(StoreFault)
    await expect(store.commit(aBatch({ tasks: [aTask({ seq: 4 })] }))).rejects.toThrow(/injected/)
    expect(await store.load()).toEqual(before)
    expect(await store.reads.task('task-2')).toEqual(aTask({ seq: 2 }))
    expect(await store.reads.finishedTasks(finishedQuery())).toHaveLength(1)
    expect(await store.reads.events(eventQuery())).toEqual([anEvent(1)])
    await store.close()
    expect(await storedSeqs()).toEqual([2])
  })

  it('is not acknowledged, nor are the batches that waited with it', async () => {
    const store = await makeStoreWithTrap()
    await store.load()
    const batches = [1, 2, 3, 4].map((seq) =>
      aBatch({ tasks: [aTask({ seq })], events: seq === 3 ? [anEvent(666)] : [] }),
    )
    const [first, ...others] = await commitAll(store, batches)
    expect(first).toBe('durable')
    for (const other of others) expect(other).toBeInstanceOf(StoreFault)
    await store.close()
    expect(await storedSeqs()).toEqual([1])
  })

  it('is not repeated: closing leaves the log unchanged, and the next start reads it', async () => {
    const store = await makeStoreWithTrap()
    await store.commit(aBatch({ tasks: [aTask({ seq: 1 })] }))
    await expect(store.commit(aBatch({ events: [anEvent(666)] }))).rejects.toThrow(StoreFault)
    await store.close()
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(0)
    expect(await storedSeqs()).toEqual([1])
  })
})

describe('a record that cannot be stored', () => {
  it('is refused, as are all later records', async () => {
    const store = createSqliteStore({ path })
    await store.commit(aBatch({ tasks: [aTask({ seq: 1 })] }))
    const endless: Record<string, unknown> = { ...aTask({ seq: 3 }) }
    endless['labels'] = endless
    await expect(
      store.commit(aBatch({ tasks: [aTask({ seq: 2 }), endless as unknown as TaskRecord] })),
    ).rejects.toThrow(/a record cannot be stored/)
    await expect(store.commit(aBatch())).rejects.toThrow(StoreFault)
    await store.close()
    expect(await storedSeqs()).toEqual([1])
  })

  it('may have a fraction in a column of whole numbers', async () => {
    const store = createSqliteStore({ path })
    await expect(store.commit(aBatch({ events: [anEvent(1, { at: 0.5 })] }))).rejects.toThrow(
      /cannot store REAL value in INTEGER column events\.at/,
    )
    await store.close()
  })
})

describe('a full or failing disk', () => {
  it('ends writing with one line; acknowledged changes are stored, and reads continue', async () => {
    const store = createSqliteStore({ path, maxPages: 60 })
    const acknowledged: number[] = []
    let fault: unknown = null
    for (let seq = 1; fault === null && seq <= 1000; seq++) {
      await Promise.resolve(store.commit(aBatch({ tasks: [aTask({ seq })] }))).then(
        () => acknowledged.push(seq),
        (error: unknown) => (fault = error),
      )
    }
    expect(fault).toBeInstanceOf(StoreFault)
    expect(String(fault)).toMatch(
      new RegExp(
        /the disk is full: .*headroom\.db could not be written \(SQLITE_FULL.*free some /.source +
          /space, then start again/.source,
      ),
    )
    await expect(store.commit(aBatch())).rejects.toBe(fault)
    expect((await store.load()).openTasks.map((task) => task.seq)).toEqual(acknowledged)
    expect(await store.reads.task('task-1')).toEqual(aTask({ seq: 1 }))
    await store.close()
    expect(await storedSeqs()).toEqual(acknowledged)
  })

  it('is reported by its cause (here: a file size limit), with the same guarantee', async () => {
    const { NODE_V8_COVERAGE: _, ...env } = process.env
    const limited = ['-c', 'ulimit -f 1500; exec "$0" "$@"', process.execPath, CHILD, 'commit', path]
    const child = spawnSync('bash', limited, { encoding: 'utf8', env, maxBuffer: 1 << 26 })
    const lines = child.stdout.trim().split('\n')
    const acknowledged = Number(lines.at(-3))
    expect(lines.at(-2)).toMatch(
      /^fault StoreFault: the disk failed on .*headroom\.db \(SQLITE_IOERR.*check the disk, then start again/,
    )
    expect(lines.at(-1)).toBe(`stored ${acknowledged}`)
    expect(child.status).toBe(3)
    expect((await storedSeqs()).length).toBe(acknowledged)
  })
})

describe('a file that another program keeps locked', () => {
  it('ends writing once the timeout has passed', async () => {
    const store = createSqliteStore({ path, busyTimeoutMs: 0 })
    await store.load()
    const other = new Database(path)
    other.exec('begin immediate')
    await expect(store.commit(aBatch({ tasks: [aTask()] }))).rejects.toThrow(
      /headroom\.db is locked by another program \(SQLITE_BUSY/,
    )
    expect((await store.load()).openTasks).toEqual([])
    other.close()
    await expect(store.commit(aBatch())).rejects.toThrow(StoreFault)
    await store.close()
  })
})

describe('a disk that does not answer', () => {
  const rows = encodeBatch(aBatch())

  it('lets a limited number of commits wait, then fails them all', async () => {
    const queue = createCommitQueue(() => new Promise(() => undefined))
    void queue.add(rows)
    const waiting = Array.from({ length: 10_000 }, () => queue.add(rows).catch(String))
    await expect(queue.add(rows)).rejects.toThrow(/the disk has stalled: 10000 commits wait for it/)
    expect(new Set(await Promise.all(waiting))).toEqual(
      new Set(['StoreFault: the disk has stalled: 10000 commits wait for it']),
    )
    expect(queue.hasFailed()).toBe(true)
  })

  it('gets all waiting batches as one transaction if it is only slow, up to a limit', async () => {
    const sizes: number[] = []
    const queue = createCommitQueue(async (batches) => void sizes.push(batches.length))
    await Promise.all(Array.from({ length: 300 }, () => queue.add(rows)))
    expect(sizes).toEqual([1, 256, 43])
    await queue.end(new StoreFault('closed'))
    await expect(queue.add(rows)).rejects.toThrow('closed')
    expect(queue.hasFailed()).toBe(false)
  })
})

describe('a kill -9 of the process', () => {
  it('loses no acknowledged change, however often it happens', async () => {
    let acknowledged = 0
    for (const commits of [1, 7, 40]) {
      const child = spawn(process.execPath, [CHILD, 'commit', path], { stdio: ['ignore', 'pipe', 'inherit'] })
      const exited = new Promise((resolve) => child.once('exit', resolve))
      const target = acknowledged + commits
      for await (const line of createInterface({ input: child.stdout })) {
        expect(line).not.toMatch(/fault/)
        if (line !== 'open') acknowledged = Number(line)
        if (acknowledged >= target) child.kill('SIGKILL')
      }
      await exited
      expect(child.signalCode).toBe('SIGKILL')
      const stored = await storedSeqs()
      expect(stored.length).toBeGreaterThanOrEqual(acknowledged)
      expect(stored).toEqual(stored.map((_, index) => index + 1))
    }
  })
})
