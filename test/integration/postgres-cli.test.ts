/** Commands on the PostgreSQL store of a stopped controller. */
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { replicationCheck, storeChecks } from '../../cli/doctor/store.ts'
import { createPostgresStore } from '../../controller/adapters/postgres/store.ts'
import { createSqliteStore } from '../../controller/adapters/sqlite/store.ts'
import { createFolderFiles } from '../../services/files/folder-files.ts'
import { aBatch, aTask } from '../support/store-builders.ts'
import { headroom } from '../support/headroom-command.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

describe.skipIf(whyNoPostgres() !== null)('with a PostgreSQL server', () => {
  let server: PostgresServer
  const folder = mkdtempSync(join(tmpdir(), 'headroom-tokens-'))
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(async () => {
    await server.clear()
    rmSync(join(folder, 'postgres.mark'), { force: true })
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  const token = (...args: string[]) =>
    headroom(['token', ...args, '--data-dir', folder], { env: { CONTROLLER_STORE_URL: server.url } })

  it('makes, shows and revokes tokens while no controller runs', async () => {
    const made = await token('create', 'root', '--role', 'admin', '-o', 'json')
    expect([made.code, JSON.parse(made.stdout)]).toMatchObject([0, { name: 'root', role: 'admin' }])
    const { id } = JSON.parse(made.stdout) as { readonly id: string }
    expect(await server.query('select id from headroom.tokens')).toEqual([{ id }])
    expect(JSON.parse((await token('list', '-o', 'json')).stdout)).toMatchObject([{ id, name: 'root' }])
    expect((await token('revoke', id)).code).toBe(5)
    expect((await token('revoke', id, '--force')).code).toBe(0)
    expect(await server.query('select id from headroom.tokens')).toEqual([])
  })

  it('makes no store to show its tokens', async () => {
    const shown = await token('list')
    expect([shown.code, shown.stderr]).toEqual([1, expect.stringMatching(/^headroom: there is no store in /)])
  })

  it('changes no tokens while a controller runs', async () => {
    const store = createPostgresStore({ place: server.place, markBase: join(folder, 'other') })
    await store.load()
    const refused = await token('create', 'root', '--role', 'admin')
    await store.close()
    expect([refused.code, refused.stderr]).toEqual([
      5,
      expect.stringMatching(/^headroom: A controller is using postgres:.*: stop it/),
    ])
  })

  it('moves, backs up and restores uploaded folders of open tasks', async () => {
    const sha = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
    const dataDir = mkdtempSync(join(folder, 'data-'))
    const chunk = Buffer.from('print(1)\n')
    const file = { path: 'train.py', kind: 'file', bytes: chunk.length, executable: false }
    const manifest = Buffer.from(JSON.stringify({ version: 1, entries: [{ ...file, chunks: [sha(chunk)] }] }))
    const sqlite = createSqliteStore({ dataDir })
    const tasks = [{ ...aTask({ seq: 1 }), owner: 'ada', workdir: sha(manifest) }]
    await sqlite.commit(
      aBatch({ tasks, marks: { epoch: 7, nextTaskSeq: 2, nextEventSeq: 1, nextDecision: 1 } }),
    )
    await sqlite.close()
    const files = createFolderFiles(join(dataDir, 'files'))
    for (const content of [chunk, manifest]) await files.write('ada', sha(content), content)
    const env = { CONTROLLER_STORE_URL: server.url }
    const stored = () => server.query('select sha256 from headroom.uploaded_files order by bytes')
    const both = [{ sha256: sha(chunk) }, { sha256: sha(manifest) }]

    const moved = await headroom(['store', 'migrate', '--data-dir', dataDir], { env })
    expect([moved.code, moved.stdout], moved.stderr).toEqual([
      0,
      expect.stringContaining('uploaded folders of 1 open task'),
    ])
    expect(await stored()).toEqual(both)
    const backup = join(dataDir, 'backup.db')
    const made = await headroom(['backup', backup, '--data-dir', dataDir], { env })
    expect([made.code, made.stdout]).toEqual([0, expect.stringContaining('uploaded folders of 1 open task')])
    await server.query('delete from headroom.uploaded_files')
    const restore = ['restore', backup, '--data-dir', dataDir]
    const shown = await headroom([...restore, '--dry-run'], { env })
    expect([shown.code, shown.stdout]).toEqual([0, expect.not.stringContaining('missing files')])
    expect(await stored()).toEqual([])
    const restored = await headroom([...restore, '--force'], { env })
    expect([restored.code, restored.stdout]).toEqual([
      0,
      expect.stringMatching(/^postgres:.* contains the uploaded folders of 1 open task$/m),
    ])
    expect(await stored()).toEqual(both)
  })

  it('is found by the doctor, with its version', async () => {
    expect(await storeChecks({ CONTROLLER_STORE_URL: server.url })).toMatchObject([
      { name: 'store', verdict: 'ok', detail: expect.stringMatching(/ runs PostgreSQL \d+/) as unknown },
      { name: 'store: replication', verdict: 'ok' },
    ])
    expect(await storeChecks({})).toEqual([])
  })
})

describe('the doctor', () => {
  it('warns when the database has standbys, and commits wait for none of them', () => {
    expect(replicationCheck({ standbys: 1, names: '' })).toMatchObject({
      verdict: 'warn',
      detail: expect.stringContaining('synchronous_standby_names is empty') as unknown,
    })
    expect(replicationCheck({ standbys: 2, names: 'ANY 1 (*)' }).verdict).toBe('ok')
    expect(replicationCheck({ standbys: 0, names: '' }).verdict).toBe('ok')
  })

  it('names the store that cannot be reached, without its password', async () => {
    const [check] = await storeChecks({ CONTROLLER_STORE_URL: 'postgres://h:geheim@127.0.0.1:9/headroom' })
    expect(check).toMatchObject({ name: 'store', verdict: 'fail' })
    expect(JSON.stringify(check)).not.toContain('geheim')
  })
})
