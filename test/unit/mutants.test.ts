/** Mutants must stay applicable: the declaration that each one names contains its fragment exactly once. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scenarioFile } from '../mutants/hunt.ts'
import { locate } from '../mutants/locate.ts'
import { mutated } from '../mutants/mutant.ts'
import { MUTANTS } from '../mutants/mutants.ts'

const ROOT = join(import.meta.dirname, '../..')

describe('mutants', () => {
  it('have unique names', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length)
  })

  it('contain a fragment that occurs exactly once in the named declaration, and change it', () => {
    for (const { name, edits } of MUTANTS) {
      for (const each of edits) {
        const source = readFileSync(join(ROOT, each.file), 'utf8')
        expect(mutated(source, each), `${name}: ${each.find}`).not.toBe(source)
      }
    }
  })

  it('refer to existing directed scenarios and tests', () => {
    for (const { name, directed } of MUTANTS) {
      if (directed === undefined) continue
      const file = 'test' in directed ? join(ROOT, directed.test) : scenarioFile(directed.scenario)
      expect(existsSync(file), `${name}: ${file}`).toBe(true)
    }
  })

  it.each([
    'R1',
    'R2',
    'R3',
    'R4',
    'R5',
    'R6',
    'R7',
    'R8',
    'R9',
    'R10',
    'R11',
    'R12',
    'admission',
    'queue',
    'swap',
    'return',
    'stop',
  ])('include at least one of %s', (rule) => {
    expect(MUTANTS.some((mutant) => mutant.rule === rule)).toBe(true)
  })
})

describe('locate', () => {
  const source = [
    'const limit = 3',
    'class Queue {',
    '  next(now: number): number { return now + 1 }',
    '  last(now: number): number { return now + 1 }',
    '}',
    'function first(a: string, b: RegExp): string { return `${a + `${limit}`}` + String(/x(/.test(a)) }',
  ].join('\n')
  const found = (inside: string, find: string): string => {
    const { start, end } = locate(source, inside, find)
    return source.slice(start, end)
  }

  it('distinguishes two members of a class', () => {
    expect(locate(source, 'Queue.next', 'now + 1')).not.toEqual(locate(source, 'Queue.last', 'now + 1'))
  })

  it('ignores layout, comments and trailing commas', () => {
    const spread = '(\n  now: number, // why\n): number {\n  return now\n    + 1\n}'
    expect(found('Queue.last', spread)).toBe('(now: number): number { return now + 1 }')
  })

  it('reads template strings and regular expressions as tokens', () => {
    expect(found('first', '+ String ( /x(/.test(a) )')).toBe('+ String(/x(/.test(a))')
    expect(found('first', '`${limit}`')).toBe('`${limit}`')
  })

  it('refuses an ambiguous or missing fragment, and an unknown declaration', () => {
    expect(() => locate(source, '', 'now + 1')).toThrow('the file contains the fragment 2 times')
    expect(() => locate(source, 'limit', 'now + 1')).toThrow('limit contains the fragment 0 times')
    expect(() => locate(source, 'Queue.none', 'now + 1')).toThrow('0 declarations are named Queue.none')
  })
})
