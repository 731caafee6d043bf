import { describe, expect, it } from 'vitest'
import { ignoreRules } from '../../cli/files/ignore.ts'

describe('.headroomignore', () => {
  it.each([
    ['*.ckpt', 'model.ckpt', false, true],
    ['*.ckpt', 'runs/1/model.ckpt', false, true],
    ['*.ckpt', 'model.ckpt.txt', false, false],
    ['/data', 'data', true, true],
    ['/data', 'src/data', true, false],
    ['runs/', 'runs', true, true],
    ['runs/', 'runs', false, false],
    ['src/*.py', 'src/a.py', false, true],
    ['src/*.py', 'src/deep/a.py', false, false],
    ['src/**/a.py', 'src/a.py', false, true],
    ['src/**/a.py', 'src/x/y/a.py', false, true],
    ['**/cache', 'a/b/cache', true, true],
    ['logs/**', 'logs/a/b', false, true],
    ['a?c', 'abc', false, true],
    ['a?c', 'a/c', false, false],
    ['a.c', 'abc', false, false],
    ['# comment', '# comment', false, false],
    ['*.py\n!keep.py', 'keep.py', false, false],
    ['', '.git', true, true],
    ['', 'src/__pycache__', true, true],
    ['!node_modules/', 'node_modules', true, false],
  ])('%j decides about %s', (text, path, isFolder, isIgnored) => {
    expect(ignoreRules(text)(path, isFolder)).toBe(isIgnored)
  })
})
