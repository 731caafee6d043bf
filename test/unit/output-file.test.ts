/** What commands write: whole or not at all, and one line that names the option where it cannot be. */
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
import { UsageError } from '../../cli/exit-codes.ts'
import { checkPlace, makeFolder, OutputFile, writeOutput } from '../../cli/output-file.ts'
import { openRunFolder } from '../../cli/sim/run-folder.ts'
import { temporaryFolder } from '../support/headroom-command.ts'

const root = temporaryFolder()
const fresh = (): string => mkdtempSync(join(root, 'x-'))

describe('a file that a command writes', () => {
  it('takes its place when it is whole, and the one before stands until then', () => {
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

  it('leaves nothing when it is discarded, and what stood there', () => {
    const folder = fresh()
    const path = join(folder, 'a.txt')
    writeFileSync(path, 'before')
    const file = new OutputFile('--out a.txt', path)
    file.write('half')
    file.discard()
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['before', ['a.txt']])
  })

  it('is written through a link, and into what cannot be replaced', () => {
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

  it('is refused by its option where there is no room, and nothing half-written stays', () => {
    const folder = fresh()
    const path = join(folder, 'full.txt')
    // A disk that is full, from the first byte on.
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
  ])('%j is refused before the work and at its end alike', (name, says) => {
    const folder = fresh()
    writeFileSync(join(folder, 'file'), '')
    mkdirSync(join(folder, 'folder'))
    const path = name === '' ? '' : join(folder, name)
    expect(() => checkPlace('--out', path)).toThrow(says)
    expect(() => writeOutput('--out', path, 'text')).toThrow(says)
  })
})

describe('a folder that a command makes', () => {
  it('is made with those above it, or is there', () => {
    const folder = join(fresh(), 'a/b/c')
    makeFolder('--out', folder)
    makeFolder('--out', folder)
    expect(existsSync(folder)).toBe(true)
  })

  it('is refused at once where none can be made', () => {
    const file = join(fresh(), 'file')
    writeFileSync(file, '')
    expect(() => makeFolder('--out', file)).toThrow(/^--out: cannot be created: EEXIST/)
    expect(() => makeFolder('--out', join(file, 'a'))).toThrow(/^--out: cannot be created: ENOTDIR/)
    expect(() => makeFolder('--out', '')).toThrow(/^--out: cannot be created: ENOENT/)
    // Where /proc is, mkdir says that there is no parent, though there is one.
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
