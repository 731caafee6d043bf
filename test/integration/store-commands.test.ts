/** Backup, restore and verify, as an operator calls them. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { createSqliteStore, STORE_FILE } from '../../controller/adapters/sqlite/store.ts'
import { restoreStore } from '../../controller/adapters/sqlite/restore.ts'
import { verifyStore } from '../../controller/adapters/sqlite/verify.ts'
import { BlobStore } from '../../services/files/blob-store.ts'
import { createFolderFiles, folderOfOwner } from '../../services/files/folder-files.ts'
import { headroom, temporaryFolder } from '../support/headroom-command.ts'
import { getJson, putJson, serve, WITHOUT_HISTORY } from '../support/served.ts'
import {
  aBatch,
  aConfig,
  aFinalTask,
  aNode,
  anEvent,
  aRunningTask,
  aTask,
} from '../support/store-builders.ts'

const folder = temporaryFolder()
let count = 0

/** A closed store with records of every kind. */
async function aStore(): Promise<{ readonly dataDir: string; readonly path: string }> {
  const dataDir = join(folder, `data-${(count += 1)}`)
  const store = createSqliteStore({ dataDir })
  const running = aRunningTask({ seq: 3 })
  const gpus = [0, 1, 2, 3].map((index) => ({
    index,
    model: 'H100',
    physicalMib: 81_559,
    foreignMib: 0,
    roundNonP0: 0,
    roundP0: 0,
  }))
  await store.commit(
    aBatch({
      tasks: [aTask({ seq: 1 }), aFinalTask({ seq: 2 }), running],
      nodes: [aNode({ gpus, device: 'simulated' })],
      groups: [{ id: 'a100', nodeIds: ['node-1'] } as never],
      config: aConfig(1),
      events: [anEvent(1), anEvent(2)],
      marks: { epoch: 7, nextTaskSeq: 4, nextEventSeq: 3, nextDecision: 9 },
    }),
  )
  await store.close()
  return { dataDir, path: join(dataDir, STORE_FILE) }
}

function change(path: string, sql: string): void {
  const db = new Database(path)
  db.exec(sql)
  db.close()
}

const oneLine = expect.stringMatching(/^[^\n]+\n$/) as unknown

describe('headroom verify', { timeout: 300_000 }, () => {
  it('reports an intact store and its content', async () => {
    const { dataDir } = await aStore()
    const { code, stdout, stderr } = await headroom(['verify', '--data-dir', dataDir])
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/: intact; schema \d+, epoch 7, 3 tasks, 1 node and 2 events\n$/)
  })

  it('exits with 1 and one line per problem', async () => {
    const { path } = await aStore()
    change(path, 'delete from nodes; delete from events where seq = 1; update marks set next_task_seq = 2')
    change(path, "insert into events (seq, at, kind, data) values (9, 1, 'x', '{}')")
    const { code, stdout, stderr } = await headroom(['verify', path])
    expect(code).toBe(1)
    expect(stderr).toEqual(oneLine)
    expect(stdout.trim().split('\n')).toEqual([
      'marks: the next task is 2, but task 3 exists',
      'marks: the next event is 3, but event 9 exists',
      'task task-3: it is placed on node node-1, which does not exist',
      'events: 6 of 2 to 9 are missing',
    ])
  })

  it.each([
    ["update tasks set state = 'failed' where seq = 1", /task task-1: its state is not that of its record/],
    [
      "update tasks set state = 'running', record = json_set(record, '$.state', 'running') where seq = 1",
      /a task has a node exactly while it is placed/,
    ],
    ['update tasks set is_final = 1 where seq = 1', /it counts as final and is not/],
    ["update tasks set record = '{' where seq = 2", /task task-2: its record is no JSON/],
    ["update tasks set record = json_set(record, '$.seq', 8) where seq = 2", /its record is of another task/],
    [
      "update tasks set record = json_set(record, '$.placement.gpus', json('[0,5]')) where seq = 3",
      /placed on GPUs \[0,5\] of node node-1, which has 4/,
    ],
    ["update nodes set record = json_set(record, '$.id', 'x')", /node node-1: its record is of another node/],
    [
      "update config_revisions set fields = json_set(fields, '$.heartbeat_seconds', 99)",
      /configuration 1: heartbeat_seconds must be an integer from 1 to 60/,
    ],
    ['delete from marks', /marks: missing/],
    ['drop index tasks_open', /schema: index tasks_open is missing/],
    ['alter table nodes add column x text', /schema: table nodes differs from that of version \d+/],
  ])('detects: %s', async (sql, problem) => {
    const { path } = await aStore()
    change(path, sql)
    const { problems } = await verifyStore(path)
    expect(problems.join('\n')).toMatch(problem)
  })

  it('distinguishes a damaged file, another database, a later schema and a missing file', async () => {
    const { path } = await aStore()
    truncateSync(path, 3 * 4096)
    await expect(verifyStore(path).then(({ problems }) => problems.join())).rejects.toThrow(/damaged/)
    const other = join(folder, 'other.db')
    change(other, 'create table t (x)')
    await expect(verifyStore(other)).rejects.toThrow(/a database of another program/)
    const later = (await aStore()).path
    change(later, "insert into schema_version values (999, 'later', 1)")
    await expect(verifyStore(later)).rejects.toThrow(/written by a newer Headroom/)
    writeFileSync(join(folder, 'empty.db'), '')
    await expect(verifyStore(join(folder, 'empty.db'))).rejects.toThrow(/it never contained a store/)
    const { code, stderr } = await headroom(['verify', join(folder, 'none.db')])
    expect([code, stderr]).toEqual([2, oneLine])
  })
})

describe('headroom backup', { timeout: 300_000 }, () => {
  it('copies a store while its controller writes; the copy is intact and private', async () => {
    const data = join(folder, 'running')
    const served = await serve(data, WITHOUT_HISTORY)
    await putJson(`${served.url}/api/v1/config`, { default_vram_overcommit_percent: 41 })
    let written = 0
    let isWriting = true
    const writing = (async () => {
      while (isWriting) {
        expect(
          (await putJson(`${served.url}/api/v1/config`, { reservation_after_seconds: 1 + (written += 1) }))
            .status,
        ).toBe(200)
      }
    })()
    const copies = join(folder, 'copies')
    mkdirSync(copies)
    const { code, stdout } = await headroom(['backup', copies], { env: { CONTROLLER_DATA_DIR: data } })
    isWriting = false
    await writing
    expect(code).toBe(0)
    expect(written).toBeGreaterThan(0)
    const [name = ''] = readdirSync(copies)
    expect(stdout).toContain(join(copies, name))
    expect((statSync(join(copies, name)).mode & 0o777).toString(8)).toBe('600')
    expect((await verifyStore(join(copies, name))).problems).toEqual([])
    expect(await getJson(`${served.url}/readyz`)).toMatchObject({ status: 'ready' })
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  })

  it('keeps the given number of newest copies in a folder', async () => {
    const { dataDir } = await aStore()
    const copies = join(folder, 'rotated')
    mkdirSync(copies)
    for (const day of ['01', '02', '03'])
      writeFileSync(join(copies, `headroom-2026-01-${day}T00-00-00-000Z.db`), '')
    writeFileSync(join(copies, 'mine.db'), '')
    expect((await headroom(['backup', copies, '--data-dir', dataDir, '--keep', '2'])).stdout).toMatch(
      /, 2 older copies removed\n$/,
    )
    const left = readdirSync(copies).sort((a, b) => (a < b ? -1 : 1))
    expect(left).toEqual([
      'headroom-2026-01-03T00-00-00-000Z.db',
      expect.stringMatching(/^headroom-2\d{3}/),
      'mine.db',
    ])
  })

  it.each([
    [['backup', 'FOLDER/b.db', '--data-dir', '/nowhere'], /no store at/],
    [['backup', 'FOLDER/exists.db', '--data-dir', 'DATA'], /already exists/],
    [['backup', 'FOLDER/nofolder/', '--data-dir', 'DATA'], /folder .* not found/],
    [['backup', 'FOLDER/b.db', '--data-dir', 'DATA', '--keep', '3'], /--keep requires a folder/],
    [['restore', 'FOLDER/none.db', '--data-dir', 'DATA'], /file .* not found/],
  ])('is refused in one line for invalid arguments: %j', async (args, why) => {
    const { dataDir } = await aStore()
    writeFileSync(join(folder, 'exists.db'), '')
    const { code, stderr } = await headroom(
      args.map((each) => each.replace('FOLDER', folder).replace('DATA', dataDir)),
    )
    expect([code, stderr]).toEqual([2, oneLine])
    expect(stderr).toMatch(why)
  })
})

describe('uploaded folders of open tasks', { timeout: 300_000 }, () => {
  const sha = (content: string) => createHash('sha256').update(content).digest('hex')
  const [code, data] = ['print(1)\n', 'x'.repeat(5_000)]
  const folderOf = (name: string, chunk: string) =>
    JSON.stringify({
      version: 1,
      entries: [{ path: name, kind: 'file', bytes: chunk.length, executable: false, chunks: [sha(chunk)] }],
    })

  /** Two open tasks of different owners with a folder each, and one that has ended. */
  async function aStoreWithFiles(): Promise<{ readonly dataDir: string; readonly path: string }> {
    const dataDir = join(folder, `files-${(count += 1)}`)
    const manifests = [folderOf('train.py', code), folderOf('data', data), folderOf('old', 'old')]
    const tasks = manifests.map((manifest, i) => ({
      ...(i === 2 ? aFinalTask : aTask)({ seq: i + 1 }),
      owner: ['alice', 'bob', 'alice'][i] ?? '',
      workdir: sha(manifest),
    }))
    const store = createSqliteStore({ dataDir })
    const marks = { epoch: 7, nextTaskSeq: 4, nextEventSeq: 3, nextDecision: 9 }
    await store.commit(aBatch({ tasks, config: aConfig(1), events: [anEvent(1), anEvent(2)], marks }))
    await store.close()
    const blobs = openBlobs(dataDir)
    for (const [i, chunk] of [code, data].entries())
      for (const content of [chunk, manifests[i] ?? ''])
        expect(await blobs.put(tasks[i]?.owner ?? null, sha(content), Buffer.from(content))).toMatchObject({
          ok: true,
        })
    return { dataDir, path: join(dataDir, STORE_FILE) }
  }
  const openBlobs = (dataDir: string) =>
    new BlobStore({
      files: createFolderFiles(join(dataDir, 'files')),
      limits: { maxBytes: 1e9, maxBytesPerOwner: 1e9, minFreeBytes: 0, minFreePercent: 0 },
      maxWorkdirBytes: 1e9,
      now: Date.now,
    })

  it('are in the backup and return on another host; rotation removes them', async () => {
    const { dataDir } = await aStoreWithFiles()
    const copies = join(folder, 'copies-with-files')
    mkdirSync(copies)
    const made = await headroom(['backup', copies, '--data-dir', dataDir])
    expect(made).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/\.files \(6 KiB\): uploaded folders of 2 open tasks\n$/) as string,
    })
    const [name = ''] = readdirSync(copies).filter((each) => each.endsWith('.db'))
    const elsewhere = join(folder, 'elsewhere')
    const restored = await headroom(['restore', join(copies, name), '--data-dir', elsewhere])
    expect(restored.code).toBe(0)
    expect(restored.stdout).toContain(
      `${join(elsewhere, 'files')} contains the uploaded folders of 2 open tasks`,
    )
    const blobs = openBlobs(elsewhere)
    expect(await blobs.whyUnusable('alice', sha(folderOf('train.py', code)))).toBeNull()
    expect(await blobs.whyUnusable('bob', sha(folderOf('data', data)))).toBeNull()
    expect(await blobs.whyUnusable('bob', sha(folderOf('train.py', code)))).toContain('is not a manifest')
    expect(statSync(join(copies, `${name}.files`)).mode & 0o777).toBe(0o700)
    await headroom(['backup', copies, '--data-dir', dataDir, '--keep', '1'])
    expect(readdirSync(copies).filter((each) => each.startsWith(name))).toEqual([])
  })

  it('that cannot be copied are one line, and leave no backup; after a restore they are named', async () => {
    const { dataDir } = await aStoreWithFiles()
    const copies = join(folder, 'copies-that-fail')
    mkdirSync(copies)
    const copy = join(copies, 'b.db')
    writeFileSync(`${copy}.files`, 'mine')
    const refused = await headroom(['backup', copy, '--data-dir', dataDir])
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringMatching(/b\.db\.files already exists/)])
    rmSync(`${copy}.files`)
    const broken = join(dataDir, 'files', folderOfOwner('bob'), sha(data))
    rmSync(broken)
    mkdirSync(broken)
    const failed = await headroom(['backup', copy, '--data-dir', dataDir])
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringMatching(/^\S*.*could not be copied to .*EISDIR.*No backup was created\n$/),
    ])
    expect(readdirSync(copies)).toEqual([])
    rmSync(broken, { recursive: true })
    await headroom(['backup', copy, '--data-dir', dataDir])
    const elsewhere = join(folder, 'elsewhere-that-fails')
    mkdirSync(elsewhere)
    writeFileSync(join(elsewhere, 'files'), '')
    const restored = await headroom(['restore', copy, '--data-dir', elsewhere])
    expect([restored.code, restored.stderr]).toEqual([
      1,
      expect.stringMatching(
        /could not be copied to .*The store was restored: copy the files before you start the controller\n$/,
      ),
    ])
    expect(existsSync(join(elsewhere, STORE_FILE))).toBe(true)
  })

  it('that are damaged or missing are named by backup, restore and its dry run', async () => {
    const { dataDir, path } = await aStoreWithFiles()
    const [, bobs = ''] = ['alice', 'bob'].map((owner) => join(dataDir, 'files', folderOfOwner(owner)))
    writeFileSync(join(bobs, sha(data)), 'y'.repeat(5_000))
    const copy = join(folder, 'incomplete.db')
    const says = /Files are missing from the uploaded folders .* of 1 open task\..*\n  task-2 /s
    const made = await headroom(['backup', copy, '--data-dir', dataDir])
    expect([made.code, made.stdout]).toEqual([0, expect.stringMatching(says)])
    rmSync(`${copy}.files`, { recursive: true })
    const elsewhere = join(folder, 'elsewhere-incomplete')
    const both = /Files are missing from the uploaded folders .* of 2 open tasks\..*\n  task-1 .*\n  task-2 /s
    const dry = await headroom(['restore', copy, '--data-dir', elsewhere, '--dry-run'])
    expect([dry.code, dry.stdout]).toEqual([0, expect.stringMatching(both)])
    expect(existsSync(join(elsewhere, 'files'))).toBe(false)
    expect((await headroom(['restore', copy, '--data-dir', elsewhere])).stdout).toMatch(both)
    // On the same host the files of the first task are still there.
    const back = await headroom(['restore', copy, '--data-dir', dataDir, '--force'])
    expect(back.stdout).toMatch(says)
    expect(existsSync(path)).toBe(true)
  })
})

describe('headroom restore', { timeout: 300_000 }, () => {
  it('restores the backup with a higher epoch, and puts the newer store aside', async () => {
    const { dataDir, path } = await aStore()
    const copy = join(folder, 'restore.db')
    expect((await headroom(['backup', copy, '--data-dir', dataDir])).code).toBe(0)
    change(path, "update nodes set record = json_set(record, '$.name', 'renamed-node')")
    const refused = await headroom(['restore', copy, '--data-dir', dataDir])
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/use --force to rename and replace it\n$/),
    ])
    const { code, stdout } = await headroom(['restore', copy, '--data-dir', dataDir, '--force'])
    expect(code).toBe(0)
    const aside = /the previous store is now (\S+)/.exec(stdout)?.[1] ?? ''
    const before = new Database(aside, { readonly: true })
    expect(before.prepare('select record from nodes').pluck().get()).toContain('renamed-node')
    before.close()
    const restored = await loaded(path)
    expect(JSON.stringify(restored)).not.toContain('renamed-node')
    expect(restored.marks.epoch).toBeGreaterThanOrEqual(7 + 10_000)
    expect(restored.recovery).toMatchObject({ reason: 'restored' })
    expect((await verifyStore(path)).problems).toEqual([])
  })

  it('restores a store that was lost with its folder, and a controller starts on it', async () => {
    const { dataDir } = await aStore()
    const copy = join(folder, 'gone.db')
    await headroom(['backup', copy, '--data-dir', dataDir])
    rmSync(dataDir, { recursive: true })
    expect((await headroom(['restore', copy, '--data-dir', dataDir])).code).toBe(0)
    const served = await serve(dataDir, { CONTROLLER_EXPECT_STORE: 'true', ...WITHOUT_HISTORY })
    expect(await getJson(`${served.url}/api/v1/tasks/task-3`)).toMatchObject({ id: 'task-3' })
    served.process.kill('SIGKILL')
  })

  it('changes nothing if the backup is invalid', async () => {
    const { path } = await aStore()
    const { path: bad } = await aStore()
    change(bad, 'delete from nodes')
    const before = statSync(path)
    await expect(
      restoreStore({ backup: bad, path, isForced: true, at: new Date(0), busyTimeoutMs: 0 }),
    ).rejects.toThrow(/was not restored: task task-3: it is placed on node node-1/)
    expect(statSync(path)).toMatchObject({ ino: before.ino, size: before.size })
  })

  it('does not wait for a controller, and says that one uses the store', async () => {
    const { path } = await aStore()
    const backup = join(folder, 'copy-of-running.db')
    copyFileSync(path, backup)
    const store = createSqliteStore({ path })
    await store.load()
    await expect(
      restoreStore({ backup, path, isForced: true, at: new Date(0), busyTimeoutMs: 0 }),
    ).rejects.toThrow(/in use by another controller/)
    await store.close()
  })
})

describe('an inconsistent store', { timeout: 300_000 }, () => {
  it('prevents the start of the controller, and one line says what to do', async () => {
    const { dataDir, path } = await aStore()
    change(path, 'delete from nodes')
    const { code, stderr } = await headroom(['serve'], {
      env: { CONTROLLER_DATA_DIR: dataDir, CONTROLLER_HTTP_PORT: '0', LOG_LEVEL: 'error' },
    })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^headroom: the store places task task-3 on a GPU .*headroom verify says what else is wrong.*\n$/,
      ),
    ])
  })
})

describe('a lost store', { timeout: 300_000 }, () => {
  it('is not taken for a new installation: one line says how to start again', async () => {
    const { dataDir, path } = await aStore()
    for (const lose of [() => rmSync(path), () => writeFileSync(path, '')]) {
      lose()
      await expect(loaded(path)).rejects.toThrow(
        /is missing or empty, but a store existed before: restore a backup .* remove .*headroom\.db\.id$/,
      )
    }
    rmSync(`${path}.id`)
    expect((await loaded(path)).openTasks).toEqual([])
    expect(existsSync(join(dataDir, `${STORE_FILE}.id`))).toBe(true)
  })

  it('with its volume is noticed if a store is expected, and no store is created', async () => {
    const dataDir = join(folder, 'unmounted')
    const { code, stderr } = await headroom(['serve'], {
      env: { CONTROLLER_DATA_DIR: dataDir, CONTROLLER_EXPECT_STORE: 'true', CONTROLLER_HTTP_PORT: '0' },
    })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^headroom: there is no store at .*CONTROLLER_EXPECT_STORE.*\n$/),
    ])
    expect(existsSync(dataDir)).toBe(false)
  })
})

async function loaded(path: string) {
  const store = createSqliteStore({ path, busyTimeoutMs: 0 })
  return store.load().finally(() => store.close())
}

describe('a folder that is not as expected', { timeout: 300_000 }, () => {
  it.each([
    ['verify', '--data-dir', ''],
    ['backup', join(folder, 'copy.db'), '--data-dir', ' '],
    ['restore', join(folder, 'copy.db'), '--data-dir', ''],
    ['token', 'list', '--data-dir', ''],
  ])('headroom %s %s %s: an empty name does not mean the current folder', async (...args) => {
    const { code, stdout, stderr } = await headroom(args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toEqual(oneLine)
    expect(stderr).toContain('It must not be empty')
  })

  it.each([
    ['list', '--data-dir'],
    ['revoke', 'some', '--data-dir'],
  ])('headroom token %s creates no store', async (...args) => {
    const dataDir = join(folder, 'mistyped')
    const { code, stderr } = await headroom(['token', ...args, dataDir])
    expect([code, existsSync(dataDir)]).toEqual([2, false])
    expect(stderr).toMatch(
      /^error: no store at .*mistyped\/headroom\.db: specify its folder with --data-dir\n$/,
    )
  })

  it('given as a file is not a disk failure', async () => {
    const { dataDir } = await aStore()
    for (const args of [
      ['verify', dataDir],
      ['restore', dataDir, '--force', '--data-dir', dataDir],
    ]) {
      const { code, stderr } = await headroom(args)
      expect(code).toBe(2)
      expect(stderr).toContain(`${dataDir} is not a file`)
    }
  })

  it('that accepts no copy is named instead of the store', async () => {
    const { dataDir, path } = await aStore()
    const target = join(dataDir, 'none', 'copy.db')
    const { code, stdout, stderr } = await headroom(['backup', target, '--data-dir', dataDir])
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toEqual(oneLine)
    expect(stderr).toContain(`the copy ${target} cannot be written (SQLITE_CANTOPEN`)
    expect(stderr).toContain(`${path} is unchanged`)
  })
})
