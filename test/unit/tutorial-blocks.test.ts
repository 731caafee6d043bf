import { expect, it } from 'vitest'
import { blocksOf, isExpected } from '../tutorials/tutorial-blocks.ts'

const PAGE = '# Title\n\n```sh checkout\nmake deb\n```\n\n```sh\nls\npwd\n```\n\ntext\n\n```text\na …\n```\n'

it('The commands of a tutorial are read with their line, place and output', () => {
  expect(blocksOf(PAGE)).toEqual([
    { line: 3, where: 'checkout', retry: false, commands: 'make deb\n', output: null },
    { line: 7, where: 'debian', retry: false, commands: 'ls\npwd\n', output: 'a …\n' },
  ])
  expect(blocksOf('```sh retry\nls\n```\n')).toMatchObject([{ line: 1, retry: true }])
})

it('A block that would not be tested is an error', () => {
  expect(() => blocksOf('```bash\nls\n```\n')).toThrow('line 1: a fence "bash"')
  expect(() => blocksOf('```text\nan output without commands\n```\n')).toThrow('line 1')
})

it('An output must equal the expected one, except where it has an ellipsis', () => {
  expect(isExpected('a b  \nc\n', 'a …\nc')).toBe(true)
  expect(isExpected('a b\nmore\nc\n', 'a …\nc')).toBe(true)
  expect(isExpected('a b\nd\n', 'a …\nc')).toBe(false)
  expect(isExpected('result: 169\n', '…\nresult: 168\n')).toBe(false)
  expect(isExpected('x result: 168\nmore', '…result: 168\n')).toBe(false)
  expect(isExpected('ab', 'a.')).toBe(false)
})
