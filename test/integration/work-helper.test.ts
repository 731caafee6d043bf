/**
 * Attacks on the process that reads and writes work folders: links, names, and a task that exchanges folders
 * and links at the same time. The helper runs without a change of user here, so that only the resolution of
 * paths protects the secret.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { WorkHelper, type HelperReply } from '../../gpu-server/files/work-helper.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'

const WITHIN_MS = 60_000
const isRoot = process.getuid?.() === 0
/** Exchanges the folder `d` and the link `l` for ever, with one system call each time. */
const EXCHANGE = `
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
os.chdir(sys.argv[1])
print('ready', flush=True)
while True:
    libc.renameat2(-100, sys.argv[2].encode(), -100, sys.argv[3].encode(), 2)
`
const hasPython = (() => {
  try {
    execFileSync('python3', ['-c', 'import ctypes; ctypes.CDLL(None).renameat2'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})()

describe('the helper for work folders', { timeout: WITHIN_MS }, () => {
  let program: string
  let root: string
  let work: string
  let helper: WorkHelper
  let exchanging: ChildProcess | null = null

  beforeAll(async () => {
    program = await guardProgram()
  })
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'headroom-helper-'))
    work = join(root, 'work')
    mkdirSync(join(work, 'd'), { recursive: true })
    writeFileSync(join(work, 'd/f'), 'inside')
    mkdirSync(join(root, 'secret'))
    writeFileSync(join(root, 'secret/f'), 'SECRET')
    helper = await WorkHelper.open(program, work, null)
  })
  afterEach(() => {
    exchanging?.kill('SIGKILL')
    exchanging = null
    helper.end()
    rmSync(root, { recursive: true, force: true })
  })

  const read = (path: string): Promise<HelperReply> =>
    helper.request({ op: 'read', b: 100, payload: Buffer.from(path) })
  const list = (path: string): Promise<HelperReply> =>
    helper.request({ op: 'list', a: 500, payload: Buffer.from(`${path}\0`) })

  async function exchange(one: string, other: string): Promise<void> {
    const child = (exchanging = spawn('python3', ['-c', EXCHANGE, work, one, other], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }))
    await new Promise((resolve) => child.stdout.once('data', resolve))
  }

  it('follows links inside the folder, and none that leads out', async () => {
    symlinkSync('d/f', join(work, 'inside'))
    symlinkSync('../secret/f', join(work, 'up'))
    symlinkSync(join(root, 'secret'), join(work, 'absolute'))
    symlinkSync('/proc/self/root/etc', join(work, 'magic'))
    symlinkSync('loop', join(work, 'loop'))
    expect((await read('inside')).content.toString()).toBe('inside')
    for (const path of [
      'up',
      'absolute/f',
      'magic/passwd',
      'loop',
      '..',
      '../secret/f',
      'd/../../secret/f',
      '/etc/passwd',
    ]) {
      expect([path, (await read(path)).error]).toEqual([path, expect.stringMatching(/EXDEV|ELOOP/)])
      expect([path, (await list(path)).error]).toEqual([path, expect.stringMatching(/EXDEV|ELOOP/)])
    }
    // A list names links and does not enter them.
    expect((await list('')).content.toString('latin1')).not.toContain('passwd')
  })

  it('does not wait for a FIFO, and reads regular files only', async () => {
    execFileSync('mkfifo', [join(work, 'fifo')])
    expect((await read('fifo')).error).toBe('EINVAL')
    expect((await read('d')).error).toBe('EISDIR')
    expect((await read('')).error).toBe('EISDIR')
  })

  it.skipIf(!hasPython)('never reads outside while a folder and a link are exchanged', async () => {
    symlinkSync('../secret', join(work, 'l'))
    await exchange('d', 'l')
    const seen = { inside: 0, refused: 0 }
    const until = performance.now() + WITHIN_MS / 2
    while ((seen.inside < 300 || seen.refused < 300) && performance.now() < until) {
      for (const reply of await Promise.all(Array.from({ length: 50 }, () => read('d/f')))) {
        if (reply.error !== null) seen.refused += 1
        else {
          expect(reply.content.toString()).toBe('inside')
          seen.inside += 1
        }
      }
      expect((await list('d')).content.toString('latin1')).not.toContain('SECRET')
    }
    expect(seen.inside).toBeGreaterThanOrEqual(300)
    expect(seen.refused).toBeGreaterThanOrEqual(300)
  })

  it.skipIf(!hasPython)('never writes outside while a folder and a link are exchanged', async () => {
    symlinkSync('../secret', join(work, 'l'))
    await exchange('d', 'l')
    let [written, refused] = [0, 0]
    const until = performance.now() + WITHIN_MS / 2
    for (let n = 0; (written < 200 || refused < 200) && performance.now() < until; n++) {
      const names = [`d/w${n}`, `d/s${n}`, `d/k${n}`]
      const replies = await Promise.all([
        helper.request({ op: 'write', b: 1, payload: Buffer.from(`${names[0]}\0x`) }),
        helper.request({ op: 'folder', payload: Buffer.from(`${names[1]}`) }),
        helper.request({ op: 'link', payload: Buffer.from(`${names[2]}\0f`) }),
      ])
      const done = replies.filter(({ error }) => error === null).length
      written += done
      refused += replies.length - done
    }
    exchanging?.kill('SIGKILL')
    expect(readdirSync(join(root, 'secret'))).toEqual(['f'])
    expect(written).toBeGreaterThanOrEqual(200)
    expect(refused).toBeGreaterThanOrEqual(200)
  })

  it('creates no file in place of a link, and nothing with special rights', async () => {
    symlinkSync('../secret/new', join(work, 'link'))
    const write = (path: string, how: number): Promise<HelperReply> =>
      helper.request({ op: 'write', b: how, payload: Buffer.from(`${path}\0x`) })
    expect((await write('link', 1)).error).toMatch(/EEXIST|ELOOP/)
    expect((await write('link', 0)).error).toBe('ELOOP')
    expect((await write('../out', 1)).error).toBe('EXDEV')
    expect((await write('d', 0)).error).toBe('EISDIR')
    expect((await write('run', 3)).error).toBeNull()
    expect(lstatSync(join(work, 'run')).mode & 0o7777).toBe(0o755)
    expect(existsSync(join(root, 'secret/new'))).toBe(false)
    for (const path of ['..', '.', 'd/..', '']) {
      const reply = await helper.request({ op: 'folder', payload: Buffer.from(path) })
      expect([path, reply.error]).toEqual([path, expect.stringMatching(/EINVAL|EEXIST/)])
    }
  })

  it.skipIf(!isRoot)('has the rights of the user of the task only', async () => {
    const user = { uid: 3_000_001, gid: 3_000_001 }
    writeFileSync(join(work, 'closed'), 'SECRET', { mode: 0o600 })
    writeFileSync(join(root, 'foreign'), 'SECRET', { mode: 0o600 })
    // A hard link is inside the folder: only the rights of the user protect the file.
    linkSync(join(root, 'foreign'), join(work, 'hard'))
    const theirs = await WorkHelper.open(program, work, user)
    for (const path of ['closed', 'hard'])
      expect((await theirs.request({ op: 'read', b: 100, payload: Buffer.from(path) })).error).toBe('EACCES')
    const made = await theirs.request({ op: 'write', b: 1, payload: Buffer.from('new\0x') })
    expect(made.error).toBe('EACCES')
    theirs.end()
  })

  it('lists a large folder in pages, in one order and without gaps', async () => {
    for (const name of ['a-b', 'a', 'a/b', 'a/b/c', 'a0', 'ä', 'z'])
      mkdirSync(join(work, 'many', name), { recursive: true })
    const paths: string[] = []
    for (let after = ''; ;) {
      const reply = await helper.request({ op: 'list', a: 2, payload: Buffer.from(`many\0${after}`) })
      expect(reply.error).toBeNull()
      const { content } = reply
      for (let at = 0; at < content.length;) {
        const end = at + 20 + content.readUInt16LE(at + 2)
        paths.push(content.toString('utf8', at + 20, end))
        at = end
      }
      if (reply.a === 1) break
      after = paths.at(-1) ?? ''
    }
    const expected = ['a', 'a/b', 'a/b/c', 'a-b', 'a0', 'z', 'ä'].map((name) => `many/${name}`)
    expect(paths).toEqual(expected)
  })
})
