/** How the page shows a figure: unknown is a dash, 0 is 0. */
import { describe, expect, test } from 'vitest'
import { columnsFor, perHour } from '../../ui/charts/series-data.ts'
import { clockTime, localOffset } from '../../ui/format/clock.ts'
import {
  mib,
  overcommitWords,
  percent,
  seconds,
  secondsSince,
  UNKNOWN,
  whole,
} from '../../ui/format/figures.ts'
import { GroupIdSchema } from '../../controller/api/groups/schema.ts'
import { brokerFor } from '../../ui/format/broker.ts'
import { GROUP_NAME_RULE } from '../../ui/format/groups.ts'
import { proseParts } from '../../ui/format/prose-parts.ts'
import { reasonWords } from '../../ui/format/reasons.ts'
import { subjectsOf } from '../../ui/state/response-cache.ts'
import { WAIT_REASONS } from '../../controller/query/explain/explain.ts'
import type { SeriesBody } from '../../controller/api/observe/series-schema.ts'

describe('a figure on the page', () => {
  test.each([percent, whole, mib, seconds, clockTime])('is a dash if it is unknown', (format) => {
    expect(format(null)).toBe(UNKNOWN)
    expect(format(undefined)).toBe(UNKNOWN)
  })

  test.each([
    [percent(0), '0.0%'],
    [percent(12.345), '12.3%'],
    [whole(0), '0'],
    [whole(1234567.4), '1,234,567'],
    [mib(0), '0 MiB'],
    [mib(10_239), '10.0 GiB'],
    [mib(40_960), '40.0 GiB'],
    [mib(20_971_520), '20.0 TiB'],
    [seconds(0), '0 s'],
    [seconds(0.42), '0.4 s'],
    [seconds(65), '1 min 5 s'],
    [seconds(60), '1 min'],
    [seconds(90_061), '1 d 1 h'],
    [overcommitWords(0, 0), 'off'],
    [overcommitWords(null, 50), 'inherits 50%'],
    [overcommitWords(20, 20), 'override 20%'],
  ])('is formatted: %s', (shown, expected) => {
    expect(shown).toBe(expected)
  })

  test('has the date and the zone in UTC, and the zone of this computer otherwise', () => {
    const at = '2026-07-02T23:30:05.900Z'
    expect(clockTime(at, 'utc')).toBe('2026-07-02 23:30:05Z')
    expect(clockTime(Date.parse(at), 'utc')).toBe('2026-07-02 23:30:05Z')
    const local = clockTime(at, 'local')
    expect(local).toMatch(/^2026-07-0\d \d\d:\d\d:05$/)
    const offset = localOffset(Date.parse(at)).replace('UTC', '').replace('−', '-')
    expect(new Date(`${local.replace(' ', 'T')}${offset}`).toISOString()).toBe('2026-07-02T23:30:05.000Z')
  })

  test('is never a negative age', () => {
    expect(secondsSince('2026-01-01T00:00:10Z', Date.parse('2026-01-01T00:00:00Z'))).toBe(0)
    expect(secondsSince(null, 0)).toBe(null)
  })

  test('has separate words for every wait reason', () => {
    const words = WAIT_REASONS.map(reasonWords)
    expect(new Set(words).size).toBe(WAIT_REASONS.length)
    expect(reasonWords('SOMETHING_NEW')).toBe('something new')
    // This reason means that a node has enough VRAM in total.
    expect(reasonWords('FRAGMENTED')).toBe('enough VRAM in total, but too little on each GPU')
  })
})

describe('the address of the broker for a GPU host', () => {
  test.each([
    [[], 'nats://headroom.test:4222', false],
    [['nats://127.0.0.1:31899'], 'nats://headroom.test:31899', true],
    [['nats://localhost'], 'nats://headroom.test:4222', true],
    [['tls://broker.example:4443', 'tls://other'], 'tls://broker.example:4443', true],
    [['nats://[::1]:5000'], 'nats://headroom.test:5000', true],
  ] as const)('is derived from %j', (urls, url, isKnown) =>
    expect(brokerFor(urls, 'headroom.test')).toEqual({ url, isKnown }),
  )
})

describe('the rule of group names', () => {
  test('names the characters that the controller accepts', () => {
    const words = GroupIdSchema['x-allowed' as keyof typeof GroupIdSchema] as unknown as string
    for (const part of [
      '1 to 200 letters, digits',
      'spaces',
      'dots',
      'dashes',
      'underscores',
      'letter or digit',
    ]) {
      expect(words).toContain(part)
      expect(GROUP_NAME_RULE).toContain(part)
    }
  })
})

describe('the columns of a chart', () => {
  const body = {
    x: [10, 20],
    step_seconds: 10,
    series: [{ scope: 'cluster', name: 'swap_outs', unit: 'swaps', values: [1, null] }],
  } as unknown as SeriesBody

  test('are those requested, with gaps for missing values', () => {
    expect(columnsFor(body, ['swap_outs', 'swap_ins'])).toEqual([
      [10, 20],
      [1, null],
      [null, null],
    ])
    expect(columnsFor(undefined, ['swap_outs'])).toEqual([[], []])
    expect(perHour([1, null], 10)).toEqual([360, null])
  })
})

test('An event outdates the data that it changes', () => {
  expect(subjectsOf({ kind: 'task_started' })).toContain('tasks')
  expect(subjectsOf({ kind: 'config_changed' })).toContain('config')
  expect(subjectsOf({ kind: 'node_status' })).toContain('nodes')
})

describe('a message of the server', () => {
  test('shows text between backticks as code, and other text unchanged', () => {
    expect(proseParts('nothing is drawn. A trace item with `activity` or `sample` is.')).toEqual([
      { text: 'nothing is drawn. A trace item with ', isCode: false },
      { text: 'activity', isCode: true },
      { text: ' or ', isCode: false },
      { text: 'sample', isCode: true },
      { text: ' is.', isCode: false },
    ])
    expect(proseParts('`<b>x</b>`')).toEqual([{ text: '<b>x</b>', isCode: true }])
    expect(proseParts('5 ` and no more')).toEqual([{ text: '5 ` and no more', isCode: false }])
    expect(proseParts('')).toEqual([])
  })
})
