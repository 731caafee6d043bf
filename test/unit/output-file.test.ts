/** Output of commands is written completely or not at all, and a failure names the option in one line. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { UsageError } from '../../services/exit-codes.ts'
import { checkPlace, makeFolder, OutputFile, writeOutput } from '../../services/output-file.ts'
import { openRunFolder } from '../../services/runs/run-folder.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const root = temporaryFolder()
const fresh = (): string => mkdtempSync(join(root, 'x-'))

describe('an output file', () => {
  it('replaces the previous file only when it is complete', () => {
    const folder = fresh()
    const path = join(folder, 'a.txt')
    writeFileSync(path, 'before')
    const file = new OutputFile('--out a.txt', path)
    file.write('after')
    file.close()
    expect(readFileSync(path, 'utf8')).toBe('before')
    file.publish()
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['after', ['a.txt']])
  })

  it('leaves the previous file unchanged when it is discarded', () => {
    const folder = fresh()
    const path = join(folder, 'a.txt')
    writeFileSync(path, 'before')
    const file = new OutputFile('--out a.txt', path)
    file.write('half')
    file.discard()
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['before', ['a.txt']])
  })

  it('is written through a link, and directly into a device', () => {
    const folder = fresh()
    const real = join(folder, 'real.txt')
    writeFileSync(real, 'before')
    symlinkSync(real, join(folder, 'link.txt'))
    symlinkSync('/dev/null', join(folder, 'nothing'))
    writeOutput('--out', join(folder, 'link.txt'), 'after')
    writeOutput('--out', join(folder, 'nothing'), 'after')
    expect(readFileSync(real, 'utf8')).toBe('after')
    expect([
      lstatSync(join(folder, 'link.txt')).isSymbolicLink(),
      lstatSync(join(folder, 'nothing')).isSymbolicLink(),
    ]).toEqual([true, true])
    expect(statSync('/dev/null').isCharacterDevice()).toBe(true)
  })

  it('is refused by its option on a full disk, and leaves no partial file', () => {
    const folder = fresh()
    const path = join(folder, 'full.txt')
    // A disk that is full from the first byte on.
    symlinkSync('/dev/full', `${path}.new`)
    const write = (): void => writeOutput('--out full.txt', path, 'text')
    expect(write).toThrow(UsageError)
    symlinkSync('/dev/full', `${path}.new`)
    expect(write).toThrow(/^--out full\.txt: cannot be written to: ENOSPC: no space left on device/)
    expect(readdirSync(folder)).toEqual([])
  })

  it.each([
    ['', /^--out: cannot be written to: the name is empty$/],
    ['none/a.txt', /^--out: cannot be written to: ENOENT/],
    ['file/a.txt', /^--out: cannot be written to: ENOTDIR/],
    ['folder', /^--out: cannot be written to: .*folder is a folder$/],
  ])('%j is refused equally before and after the work', (name, says) => {
    const folder = fresh()
    writeFileSync(join(folder, 'file'), '')
    mkdirSync(join(folder, 'folder'))
    const path = name === '' ? '' : join(folder, name)
    expect(() => checkPlace('--out', path)).toThrow(says)
    expect(() => writeOutput('--out', path, 'text')).toThrow(says)
  })
})

describe('an output folder', () => {
  it('is created with its parents, or may exist', () => {
    const folder = join(fresh(), 'a/b/c')
    makeFolder('--out', folder)
    makeFolder('--out', folder)
    expect(existsSync(folder)).toBe(true)
  })

  it('is refused at once if it cannot be created', () => {
    const file = join(fresh(), 'file')
    writeFileSync(file, '')
    expect(() => makeFolder('--out', file)).toThrow(/^--out: cannot be created: EEXIST/)
    expect(() => makeFolder('--out', join(file, 'a'))).toThrow(/^--out: cannot be created: ENOTDIR/)
    expect(() => makeFolder('--out', '')).toThrow(/^--out: cannot be created: ENOENT/)
    // On a host with /proc, mkdir reports a missing parent although the parent exists.
    if (existsSync('/proc/self'))
      expect(() => makeFolder('--out', '/proc/none/a')).toThrow(/^--out: cannot be created: ENOENT/)
  })
})

describe('the folder of a run', () => {
  it('A failed run keeps the previous output file', () => {
    const folder = fresh()
    writeFileSync(join(folder, 'result.json'), 'before')
    symlinkSync('/dev/full', join(folder, 'tasks.csv.new'))
    const { options, finish, abandon } = openRunFolder(folder, 0)
    options.journalSink?.write('{}\n')
    expect(() => finish({ open: [], result: {} } as never, {} as never)).toThrow(
      /--out .*: cannot be written to: ENOSPC/,
    )
    abandon()
    expect(readdirSync(folder)).toEqual(['result.json'])
    expect(readFileSync(join(folder, 'result.json'), 'utf8')).toBe('before')
  })
})
