import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EventData } from '../../controller/model/event.ts'
import { AsciiJson } from '../../simulator/results/ascii-json.ts'

const ROOM = 4096
const bytes = Buffer.alloc(ROOM)

/** Returns the written text, or null if the writer left the value to JSON.stringify. */
function written(data: EventData, room = ROOM): string | null {
  const json = new AsciiJson(bytes)
  json.begin(0, room)
  json.record(data)
  return json.isPlain ? bytes.toString('latin1', 0, json.at) : null
}

describe('the fast JSON writer', () => {
  it('writes what JSON.stringify writes, or leaves the value to JSON.stringify', () => {
    const value = fc.jsonValue({ depthSize: 'small' })
    let plain = 0
    fc.assert(
      fc.property(fc.dictionary(fc.string({ maxLength: 8 }), value), (data) => {
        const text = written(data as EventData)
        if (text === null) return
        plain += 1
        expect(text).toBe(JSON.stringify(data))
      }),
    )
    expect(plain).toBeGreaterThan(0)
  })

  it('writes every whole number', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (n) => {
        expect(written({ n })).toBe(JSON.stringify({ n }))
      }),
    )
    for (const n of [0, -0, 9, 10, 99, 100, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])
      expect(written({ n })).toBe(JSON.stringify({ n }))
  })

  it('leaves a value with special characters, or without enough space, to JSON.stringify', () => {
    for (const odd of ['ä', '"', '\\', '\n', '\u007f', 0.5, NaN]) expect(written({ odd })).toBeNull()
    expect(written({ text: 'x'.repeat(20) }, 20)).toBeNull()
  })
})
