/** Manifests of uploaded folders: what they can describe, and what is refused. */
import { describe, expect, it } from 'vitest'
import { CHUNK_BYTES } from '../../protocol/limits.ts'
import { chunksOf, readManifest, whyNoPath } from '../../protocol/manifest.ts'

const HASH = 'a'.repeat(64)
const OTHER = 'b'.repeat(64)
const file = (path: string, bytes = 1, chunks = [HASH]) => ({
  path,
  kind: 'file',
  bytes,
  executable: false,
  chunks,
})
const folder = (path: string) => ({ path, kind: 'folder' })
const link = (path: string, target: string) => ({ path, kind: 'link', target })
const read = (...entries: readonly unknown[]) => readManifest(JSON.stringify({ version: 1, entries }))
const whyNot = (...entries: readonly unknown[]): string | null => {
  const answer = read(...entries)
  return answer.ok ? null : answer.why
}

describe('a manifest', () => {
  it('describes folders, files with their chunks, and links inside the folder', () => {
    const answer = read(
      folder('src'),
      file('src/a.py', CHUNK_BYTES + 1, [HASH, OTHER]),
      file('empty', 0, []),
      link('latest', 'src/a.py'),
      link('src/up', '../empty'),
    )
    expect(answer).toMatchObject({ ok: true, bytes: CHUNK_BYTES + 1 })
    if (answer.ok)
      expect([...chunksOf(answer.manifest)]).toEqual([
        [HASH, CHUNK_BYTES],
        [OTHER, 1],
      ])
  })

  it.each([
    ['an absolute path', [file('/etc/passwd')], /relative/],
    ['a path that leads out', [file('../a')], /relative/],
    ['a path that leads out later', [folder('a'), file('a/../../b')], /relative/],
    ['the folder itself', [folder('.')], /relative/],
    ['an empty name', [folder('a'), file('a//b')], /relative/],
    ['a name with NUL', [file('a\0b')], /NUL/],
    ['half of a surrogate pair', [file('a\ud800')], /NUL/],
    ['a name of 256 bytes', [file('a'.repeat(256))], /255 bytes/],
    ['a file in no folder', [file('a/b')], /no folder before it/],
    ['a file in a file', [file('a'), file('a/b')], /no folder before it/],
    ['a file in a link', [folder('d'), link('a', 'd'), file('a/b')], /no folder before it/],
    ['two entries of one path', [file('a'), file('a')], /another entry/],
    ['a link to an absolute path', [link('a', '/etc')], /relative/],
    ['a link that leads out', [link('a', '../b')], /inside the folder/],
    ['a link that leads out on its way', [folder('a'), link('a/b', '../../x/../y')], /inside the folder/],
    ['a device', [{ path: 'a', kind: 'device' }], /kind must be/],
    ['a mode with setuid', [{ ...file('a'), mode: 0o4755 }], /no others/],
    ['an owner', [{ ...folder('a'), uid: 0 }], /no others/],
    ['a prototype', [JSON.parse('{"path":"a","kind":"folder","__proto__":{}}')], /no others/],
    ['too few chunks', [file('a', CHUNK_BYTES + 1, [HASH])], /one hash for each/],
    ['a chunk that is not a hash', [file('a', 1, ['../../x'])], /SHA-256/],
    ['a size that is not a number', [{ ...file('a'), bytes: 1.5 }], /size/],
    ['more bytes than any limit', [file('a', 2 ** 53, [])], /size/],
    ['an entry that is not an object', [null], /not an object/],
  ])('is refused with %s', (_what, entries, why) => {
    expect(whyNot(...entries)).toMatch(why)
  })

  it('is refused as a whole if it is something else', () => {
    for (const text of [
      '',
      '[]',
      'null',
      '{"version":2,"entries":[]}',
      '{"version":1}',
      '{"version":1,"entries":[],"x":1}',
    ])
      expect(readManifest(text).ok).toBe(false)
    expect(read(...Array.from({ length: 20_001 }, (_, i) => folder(`f${i}`)))).toMatchObject({ ok: false })
  })
})

it('A path of a server is checked like one of a manifest', () => {
  expect(whyNoPath('out/model.pt')).toBeNull()
  for (const path of ['', '/', '..', 'a/..', '../../.ssh/authorized_keys', 7])
    expect(whyNoPath(path)).not.toBeNull()
})
