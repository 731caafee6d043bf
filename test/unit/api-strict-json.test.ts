import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonFlaw, MAX_DEPTH, MAX_FIELDS, parseStrictJson } from '../../controller/api/http/strict-json.ts'

function flawIn(text: string): JsonFlaw {
  try {
    parseStrictJson(text)
  } catch (error) {
    if (error instanceof JsonFlaw) return error
    throw error
  }
  throw new Error(`no flaw in ${text}`)
}

describe('strict JSON', () => {
  test('accepts valid JSON with the result of JSON.parse', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.constantFrom(undefined, 1, '\t'), (text, indent) => {
        const laidOut = JSON.stringify(JSON.parse(text), null, indent)
        fc.pre(!laidOut.includes('__proto__'))
        expect(parseStrictJson(laidOut)).toEqual(JSON.parse(laidOut))
      }),
      { numRuns: 1_000 },
    )
  })

  test('refuses what JSON.parse refuses, and otherwise only duplicate fields', () => {
    const pieces = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"a"',
      '"b"',
      '"',
      '\\',
      '1',
      '-',
      '.',
      'e',
      '0',
      ' ',
      '\n',
      'true',
      'nul',
      'null',
      '\u0001',
    )
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const text = parts.join('')
        const known = accepts(() => JSON.parse(text))
        if (!known) expect(accepts(() => parseStrictJson(text))).toBe(false)
        else if (!/"a".*"a"|"b".*"b"/s.test(text)) expect(parseStrictJson(text)).toEqual(JSON.parse(text))
      }),
      { numRuns: 5_000 },
    )
  })

  test('refuses a field that occurs twice in an object, however it is escaped', () => {
    expect(flawIn('{"a": 1, "b": {"a": 2}, "a": 3}')).toMatchObject({ line: 1, column: 25 })
    expect(flawIn('{"a": 1, "\\u0061": 2}').message).toContain('the field "a" appears twice')
    expect(parseStrictJson('[{"a": 1}, {"a": 2}]')).toEqual([{ a: 1 }, { a: 2 }])
  })

  test('refuses __proto__ at every depth and accepts other names of Object members', () => {
    expect(flawIn('{"labels": {"__proto__": {}}}').message).toContain('"__proto__" is not allowed')
    expect(flawIn('{"\\u005f_proto__": 1}').message).toContain('"__proto__" is not allowed')
    const read = parseStrictJson('{"constructor": 1, "toString": 2}') as Record<string, unknown>
    expect(Object.entries(read)).toEqual([
      ['constructor', 1],
      ['toString', 2],
    ])
  })

  test('limits nesting depth', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(parseStrictJson(nested(MAX_DEPTH))).toBeInstanceOf(Array)
    expect(flawIn(nested(MAX_DEPTH + 1)).message).toContain(`deeper than ${MAX_DEPTH}`)
    expect(flawIn('['.repeat(1_000_000)).offset).toBe(MAX_DEPTH)
  })

  test.each([
    ['', 'the end of the body'],
    ['{"a": 1,}', 'a field name in double quotes'],
    ["{'a': 1}", 'a field name in double quotes'],
    ['{"a" 1}', 'expected :'],
    ['[1 2]', 'expected ]'],
    ['[1,]', 'expected a value'],
    ['{"a": 01}', 'expected }'],
    ['{"a": +1}', 'expected a value'],
    ['{"a": NaN}', 'expected a value'],
    ['"open', 'no closing quote'],
    ['"tab\there"', 'control character'],
    ['"\\x41"', 'unknown escape'],
    ['"\\ud800"', 'half of a surrogate pair'],
    ['{} {}', 'expected the end'],
    ['\ufeff{}', 'expected a value'],
    ['tru', 'expected true'],
  ])('says what is wrong in %j', (text, what) => {
    expect(flawIn(text).message).toContain(what)
  })

  test('limits the number of fields, in one object or in many', () => {
    const inOne = (count: number) => `{${Array.from({ length: count }, (_, n) => `"k${n}":0`).join()}}`
    const inMany = (count: number) => `[${Array.from({ length: count }, () => '{"a":0}').join()}]`
    for (const text of [inOne, inMany]) {
      parseStrictJson(text(MAX_FIELDS))
      expect(flawIn(text(MAX_FIELDS + 1)).message).toContain(`more than ${MAX_FIELDS} fields`)
    }
  })

  test('names line and column', () => {
    expect(flawIn('{\n  "a": 1,\n  "b": oops\n}')).toMatchObject({ line: 3, column: 8, offset: 19 })
  })
})

function accepts(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch {
    return false
  }
}
