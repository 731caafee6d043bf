/** The form of a submission: words of a command, the request, and the same as a command line. */
import { describe, expect, test } from 'vitest'
import { commandLineOf, NEW_DRAFT, requestOf, wordsOf } from '../../ui/pages/tasks/submission.ts'

describe('a command as text', () => {
  test.each([
    ['python train.py', ['python', 'train.py']],
    ['  a   b ', ['a', 'b']],
    [`echo "two words" 'it''s'`, ['echo', 'two words', 'its']],
    [`echo "a \\"b\\"" c\\ d`, ['echo', 'a "b"', 'c d']],
    [`x ''`, ['x', '']],
    [`$HOME \`x\` ; rm`, ['$HOME', '`x`', ';', 'rm']],
    ['', []],
  ])('%j has the words %j', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  test('An open quote is no command', () => {
    expect(wordsOf('echo "a')).toBeNull()
    expect(requestOf({ ...NEW_DRAFT, command: "echo 'a" })).toEqual({
      missing: 'Close the quote in the command.',
    })
  })
})

test('The request has whole MiB and only the groups that are named', () => {
  const draft = { ...NEW_DRAFT, name: ' a ', command: 'x', vramGib: '1.5', groups: 'vision, b', noswap: true }
  expect(requestOf(draft)).toEqual({
    body: {
      name: 'a',
      command: ['x'],
      vram_mib: 1536,
      gpu_count: 1,
      priority: 2,
      noswap: 1,
      groups: ['vision', 'b'],
    },
  })
})

test.each([
  [{ vramGib: '' }, /VRAM/],
  [{ vramGib: '-1' }, /VRAM/],
  [{ gpus: '0' }, /number of GPUs/],
  [{ gpus: '1.5' }, /number of GPUs/],
])('%j is not sent', (change, missing) => {
  expect(requestOf({ ...NEW_DRAFT, ...change })).toEqual({
    missing: expect.stringMatching(missing) as string,
  })
})

test('The command line quotes what a shell would change', () => {
  const draft = { ...NEW_DRAFT, command: `python "my file.py" --x='a'`, priority: '0', name: "it's" }
  expect(commandLineOf(draft)).toBe(
    `headroom run --detach --vram 16384Mi --priority P0 --name 'it'\\''s' -- python 'my file.py' --x=a`,
  )
})
