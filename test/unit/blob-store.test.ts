/** Uploaded files of tasks in the data folder: owners, limits, removal. */
import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Space } from '../../controller/ports/blob-files.ts'
import { createFolderFiles } from '../../services/files/folder-files.ts'
import { BlobStore, type BlobStoreOptions } from '../../services/files/blob-store.ts'

const HOUR = 3_600_000
const FREE = { freeBytes: 1e9, totalBytes: 1e9 }
const hashOf = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')

describe('the store of uploaded files', () => {
  let folder: string
  let now: number
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'headroom-blobs-'))
    now = Date.now()
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const open = async (more: Partial<BlobStoreOptions> = {}, space: Space = FREE): Promise<BlobStore> => {
    const store = new BlobStore({
      files: { ...createFolderFiles(join(folder, 'files')), space: () => Promise.resolve(space) },
      limits: { maxBytes: 300, maxBytesPerOwner: 200, minFreeBytes: 0, minFreePercent: 0 },
      maxWorkdirBytes: 1_000,
      now: () => now,
      ...more,
    })
    await store.loaded()
    return store
  }

  async function putFolder(store: BlobStore, owner: string | null, text: string): Promise<string> {
    const content = Buffer.from(text)
    const chunk = hashOf(content)
    const entries = [{ path: 'a', kind: 'file', bytes: content.length, executable: false, chunks: [chunk] }]
    const manifest = Buffer.from(JSON.stringify({ version: 1, entries }))
    expect(await store.put(owner, chunk, content)).toMatchObject({ ok: true })
    expect(await store.put(owner, hashOf(manifest), manifest)).toMatchObject({ ok: true })
    return hashOf(manifest)
  }

  const roomy = { limits: { maxBytes: 1e6, maxBytesPerOwner: 1e6, minFreeBytes: 0, minFreePercent: 0 } }

  it('gives an owner nothing of another owner, not even that a hash is known', async () => {
    const store = await open(roomy)
    const manifest = await putFolder(store, 'ada', 'secret')
    const chunk = hashOf(Buffer.from('secret'))
    expect(await store.whyUnusable('ada', manifest)).toBeNull()
    for (const other of ['bob', null]) {
      expect(await store.missing(other, [chunk, manifest])).toEqual([chunk, manifest])
      expect(await store.whyUnusable(other, manifest)).toMatch(/is not a manifest that you have uploaded/)
      expect(await store.belongsTo(other, manifest, chunk)).toBe(false)
      expect(await store.read(other, chunk, 0, 100)).toBeNull()
      expect((await store.usage(other)).ownBytes).toBe(0)
    }
    // The second owner pays for its own copy.
    expect(await store.put('bob', chunk, Buffer.from('secret'))).toEqual({ ok: true, isNew: true })
    expect((await store.usage('bob')).ownBytes).toBe(6)
    expect(await store.read('bob', chunk, 2, 3)).toEqual({
      base64: Buffer.from('cre').toString('base64'),
      bytes: 6,
    })
  })

  it('refuses content with another hash, and more than the limits of an owner and of all', async () => {
    const store = await open()
    const content = (size: number, fill: number): Buffer => Buffer.alloc(size, fill)
    const put = (owner: string, bytes: Buffer): unknown => store.put(owner, hashOf(bytes), bytes)
    expect(await store.put('ada', hashOf(content(1, 1)), content(1, 2))).toMatchObject({
      refusal: { code: 'invalid' },
    })
    expect(await put('ada', content(150, 1))).toMatchObject({ ok: true, isNew: true })
    expect(await put('ada', content(150, 1))).toMatchObject({ ok: true, isNew: false })
    expect(await put('ada', content(51, 2))).toMatchObject({ refusal: { code: 'uploads_full' } })
    // At the same time, so that each alone would fit.
    const both = await Promise.all([put('bob', content(100, 3)), put('bob', content(100, 4))])
    expect(both.filter((one) => (one as { ok: boolean }).ok)).toHaveLength(1)
    expect(await store.usage('bob')).toMatchObject({ ownBytes: 100, totalBytes: 250 })
    const full = await open({ limits: { ...LIMITS, minFreeBytes: 1 } }, { ...FREE, freeBytes: 0 })
    expect(await full.put('ada', hashOf(content(1, 9)), content(1, 9))).toMatchObject({
      refusal: { code: 'uploads_full', detail: expect.stringContaining('low on space') as string },
    })
  })

  it('refuses a folder that is not complete, has a wrong size, or is too large', async () => {
    const store = await open({ ...roomy, maxWorkdirBytes: 5 })
    const manifest = async (entries: unknown): Promise<string> => {
      const bytes = Buffer.from(JSON.stringify({ version: 1, entries }))
      await store.put('ada', hashOf(bytes), bytes)
      return hashOf(bytes)
    }
    const entry = (bytes: number, chunk: string) => [
      { path: 'a', kind: 'file', bytes, executable: false, chunks: [chunk] },
    ]
    const chunk = hashOf(Buffer.from('abc'))
    expect(await store.whyUnusable('ada', await manifest(entry(3, chunk)))).toMatch(
      /1 chunks that are not uploaded/,
    )
    await store.put('ada', chunk, Buffer.from('abc'))
    expect(await store.whyUnusable('ada', await manifest(entry(3, chunk)))).toBeNull()
    expect(await store.whyUnusable('ada', await manifest(entry(2, chunk)))).toMatch(/a different size/)
    expect(await store.whyUnusable('ada', await manifest(entry(6, chunk)))).toMatch(/limit is 5/)
    expect(await store.whyUnusable('ada', chunk)).toMatch(/not a valid manifest: it is not JSON/)
    expect(await store.whyUnusable('ada', await manifest([{ path: '/a', kind: 'folder' }]))).toMatch(
      /relative/,
    )
  })

  it('keeps what an open task needs, and removes the rest an hour after its last use', async () => {
    const store = await open(roomy)
    const needed = await putFolder(store, 'ada', 'needed')
    const other = await putFolder(store, 'ada', 'other')
    let needs = [{ owner: 'ada', manifest: needed }]
    store.keepFor(() => needs)
    now += HOUR - 1
    await store.collect()
    expect(await store.missing('ada', [hashOf(Buffer.from('needed'))])).toEqual([])
    expect(await store.whyUnusable('ada', other)).toBeNull()
    now += HOUR
    await store.collect()
    expect(await store.whyUnusable('ada', needed)).toBeNull()
    expect(await store.whyUnusable('ada', other)).not.toBeNull()
    needs = []
    now += HOUR
    await store.collect()
    expect(await store.usage('ada')).toMatchObject({ ownBytes: 0, totalBytes: 0 })
    const left = readdirSync(join(folder, 'files'), { recursive: true, encoding: 'utf8' })
    expect(left.filter((name) => /[0-9a-f]{64}$/.test(name))).toEqual([])
  })

  it('knows its files after a restart, without those of an interrupted upload', async () => {
    const first = await open(roomy)
    const manifest = await putFolder(first, null, 'kept')
    const [owner = ''] = readdirSync(join(folder, 'files'))
    const partial = join(folder, 'files', owner, '.upload-1-0b6f4c1e-0000-4000-8000-000000000000')
    writeFileSync(partial, 'x')
    const second = await open(roomy)
    expect(await second.whyUnusable(null, manifest)).toBeNull()
    expect((await second.usage(null)).ownBytes).toBe((await first.usage(null)).ownBytes)
    expect(existsSync(partial)).toBe(false)
  })
})

const LIMITS = { maxBytes: 300, maxBytesPerOwner: 200, minFreeBytes: 0, minFreePercent: 0 }
