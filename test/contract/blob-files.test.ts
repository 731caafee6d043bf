/** The contract of BlobFiles, for a folder and for PostgreSQL. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createPostgresStore, type PostgresStore } from '../../controller/adapters/postgres/store.ts'
import type { BlobFiles } from '../../controller/ports/blob-files.ts'
import { createFolderFiles } from '../../services/files/folder-files.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)]

/** @param open the same place each time */
function contract(open: () => Promise<BlobFiles>): void {
  it('reads parts of what was written, of its owner only', async () => {
    const files = await open()
    await files.write('ada', A, Buffer.from('content'))
    await files.settle('ada')
    const read = async (...[owner, hash, offset, max]: Parameters<BlobFiles['read']>) =>
      (await files.read(owner, hash, offset, max))?.toString() ?? null
    expect(await read('ada', A, 0, 100)).toBe('content')
    expect(await read('ada', A, 3, 2)).toBe('te')
    expect(await read('ada', A, 7, 2)).toBe('')
    expect([await read('ada', B, 0, 9), await read('bob', A, 0, 9), await read(null, A, 0, 9)]).toEqual([
      null,
      null,
      null,
    ])
  })

  it('lists the files of all owners with their sizes, also after it was opened again', async () => {
    const before = Date.now()
    const first = await open()
    expect(await first.list()).toEqual([])
    await first.write(null, A, Buffer.from('x'))
    await first.write('ada', A, Buffer.from('y'))
    // Bytes of every value, and none.
    await first.write('ada', B, Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)))
    await first.write('"', B, Buffer.alloc(0))
    const again = await open()
    const listed = [...(await again.list())].sort((a, b) => a.bytes - b.bytes)
    expect(listed.map(({ at: _, ...file }) => file)).toEqual([
      { owner: '"', sha256: B, bytes: 0 },
      ...listed.slice(1, 3).map(({ owner }) => ({ owner, sha256: A, bytes: 1 })),
      { owner: 'ada', sha256: B, bytes: 256 },
    ])
    expect(new Set(listed.map(({ owner }) => owner))).toEqual(new Set([null, 'ada', '"']))
    for (const { at } of listed) expect(Math.abs(at - before)).toBeLessThan(60_000)
    expect((await again.read('ada', B, 0, 300))?.at(-1)).toBe(255)
  })

  it('removes files of one owner, and writes them again', async () => {
    const files = await open()
    for (const owner of ['ada', 'bob']) await files.write(owner, A, Buffer.from(owner))
    await files.remove('ada', [A, B])
    expect((await files.list()).map(({ owner }) => owner)).toEqual(['bob'])
    expect(await files.read('ada', A, 0, 9)).toBeNull()
    await files.write('ada', A, Buffer.from('ada'))
    expect((await files.read('ada', A, 0, 9))?.toString()).toBe('ada')
  })
}

describe('uploaded files in a folder', () => {
  let root: string
  beforeEach(() => (root = mkdtempSync(join(tmpdir(), 'headroom-files-'))))
  contract(() => Promise.resolve(createFolderFiles(join(root, 'files'))))
})

describe.skipIf(whyNoPostgres() !== null)('uploaded files in PostgreSQL', () => {
  let server: PostgresServer
  let store: PostgresStore | null = null
  const dataDir = mkdtempSync(join(tmpdir(), 'headroom-store-'))
  const markBase = join(dataDir, 'postgres')
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: false })
  })
  beforeEach(async () => {
    await store?.close()
    store = null
    await server.clear()
    rmSync(`${markBase}.mark`, { force: true })
  })
  afterAll(async () => {
    await store?.close()
    rmSync(dataDir, { recursive: true })
  })

  async function opened(): Promise<BlobFiles> {
    await store?.close()
    store = createPostgresStore({ place: server.place, markBase })
    await store.opened
    return store.files() as BlobFiles
  }
  contract(opened)

  it('refuse changes of a controller that leads no more, and those of the next one are whole', async () => {
    const files = await opened()
    await files.write('ada', A, Buffer.from('kept'))
    // Its sessions are not ended: only the fence refuses it.
    await server.query("update headroom.leader set holder = 'next'")
    await expect(files.write('ada', B, Buffer.from('late'))).rejects.toThrow('another controller leads')
    await expect(files.remove('ada', [A])).rejects.toThrow('another controller leads')
    expect((await files.list()).map(({ sha256 }) => sha256)).toEqual([A])
  })

  it('are written again after their connection was cut', async () => {
    const files = await opened()
    await files.write('ada', A, Buffer.from('a'))
    await server.query('select pg_terminate_backend(sessions[2]) from headroom.leader')
    await files.write('ada', B, Buffer.from('b')).catch(() => undefined)
    await files.write('ada', B, Buffer.from('b'))
    expect(await files.list()).toHaveLength(2)
  })
})
