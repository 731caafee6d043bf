import { expect, it } from 'vitest'
import { checkOf } from '../../protocol/check.ts'
import { MAX_IMAGE_LENGTH } from '../../protocol/limits.ts'
import { image } from '../../protocol/message-fields.ts'
import { IMAGE_REFERENCE } from '../../protocol/fields.ts'

const SHA256 = `sha256:${'0123456789abcdef'.repeat(4)}`
const check = checkOf(image('An image'))

it.each([
  'busybox',
  'busybox:1.36',
  'library/busybox',
  'docker.io/library/busybox:latest',
  'registry.example:5000/team/train:v2.1_b-3',
  'localhost:5000/a',
  'a-b.example/x__y/z.w',
  `busybox@${SHA256}`,
  `nvcr.io/nvidia/pytorch:24.05-py3@${SHA256}`,
  'a'.repeat(MAX_IMAGE_LENGTH),
])('the image reference %s is accepted', (reference) => {
  expect(check(reference)).toBeNull()
  expect(new RegExp(IMAGE_REFERENCE.pattern, 'u').test(reference)).toBe(true)
})

it.each([
  '',
  ' ',
  'busybox ',
  'busybox\n',
  'Busybox',
  '-v',
  '--privileged',
  '/busybox',
  'a//b',
  'a/',
  '../a',
  'a/../b',
  'http://registry.example/a',
  'user:secret@registry.example/a',
  'a:',
  'a:-tag',
  `a:${'t'.repeat(129)}`,
  'a@',
  'a@sha256:0123',
  `a@${SHA256.toUpperCase()}`,
  'a;rm -rf',
  'a$(id)',
  'ä',
  'a'.repeat(MAX_IMAGE_LENGTH + 1),
])('the image reference %j is refused', (reference) => {
  expect(check(reference)).toMatch(/must be a text of 1 to 512 characters, a reference to an image/)
})

it('A long text that is not a reference is refused in a few milliseconds', () => {
  const began = performance.now()
  for (const part of ['a', 'a-', 'a.', 'a/', 'A.', 'a__', '-'])
    expect(check(`${part.repeat(MAX_IMAGE_LENGTH).slice(0, MAX_IMAGE_LENGTH - 1)}!`)).not.toBeNull()
  expect(performance.now() - began).toBeLessThan(500)
})
