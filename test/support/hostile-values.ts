/** Values that no API should receive: wrong types, ranges, encodings, sizes and names. */
import type { RandomStream } from '../../controller/ports/random.ts'

export function pick<T>(random: RandomStream, from: readonly T[]): T {
  return from[Math.floor(random() * from.length)] as T
}

/** JSON text of one value; not all of it is valid JSON. */
export function hostileJson(random: RandomStream): string {
  return pick(random, JSON_VALUES)()
}

/** For a part of a path or a query value, as it appears in the URL; not all of it can be decoded. */
export function hostileUrlPart(random: RandomStream): string {
  return pick(random, URL_PARTS)
}

export function hostileKey(random: RandomStream): string {
  return pick(random, KEYS)
}

export function hostileHeader(random: RandomStream): readonly [name: string, value: string] {
  return pick(random, HEADERS)
}

const KEYS = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  '',
  'a'.repeat(5_000),
  '\\u0000',
  '\\ud800',
  '/',
  '~1',
  '$ref',
  'vram_mib ',
  'NOSWAP',
]

const SCALARS = [
  'null',
  'true',
  'false',
  '0',
  '-0',
  '-1',
  '1',
  '1.5',
  '1e2',
  '1e309',
  '-1e309',
  '9007199254740993',
  '1e-400',
  '16777217',
  '00',
  '0x10',
  'NaN',
  'Infinity',
  '"20"',
  '""',
  '" "',
  '"\\u0000"',
  '"\\ud800"',
  '"\\u202Eabc"',
  '"__proto__"',
  '"<script>alert(1)</script>"',
  '"%s%n"',
  '"\' OR 1=1 --"',
  '"../../etc/passwd"',
  '[]',
  '{}',
  '[null]',
  '[[[]]]',
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{"x":1}}}',
  'undefined',
  "'x'",
  '//',
  '"\n"',
]

const JSON_VALUES: readonly (() => string)[] = [
  ...SCALARS.map((text) => () => text),
  () => `"${'x'.repeat(100_000)}"`,
  () => '9'.repeat(400),
  () => `[${'1,'.repeat(20_000)}1]`,
  () => `${'['.repeat(500)}${']'.repeat(500)}`,
  () => `${'['.repeat(50_000)}${']'.repeat(50_000)}`,
  () => `${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`,
  () => `{${Array.from({ length: 5_000 }, (_, i) => `"k${i}":${i}`).join(',')}}`,
  () => '{"a":1,"a":2}',
]

const URL_PARTS = [
  '',
  '%',
  '%zz',
  '%00',
  '%0d%0aX-Evil:%201',
  '%ff%fe',
  '%C0%AF',
  '..',
  '%2e%2e%2f%2e%2e%2fetc',
  '.',
  '__proto__',
  'constructor',
  '%F0%9F%98%80',
  '%E2%80%AE',
  '-1',
  '0',
  '1.5',
  '1e3',
  '99999999999999999999',
  'NaN',
  'null',
  'undefined',
  'true',
  '[]',
  '{}',
  '[$ne]=1',
  "'%20OR%201=1--",
  '%3Cscript%3E',
  '*',
  '%25%32%65',
  'a'.repeat(300),
  'a'.repeat(5_000),
  '2026-13-45T99:99:99Z',
  '+1h',
  '-1h',
  '-999999999h',
  '00000000-0000-0000-0000-000000000000',
  'P1',
  'all,pending',
  '%20',
]

const HEADERS: readonly (readonly [string, string])[] = [
  ['if-match', '"'],
  ['if-match', '*'],
  ['if-match', 'W/"1"'],
  ['if-match', 'x'.repeat(4_000)],
  ['idempotency-key', 'x'.repeat(8_000)],
  ['idempotency-key', ''],
  ['idempotency-key', '__proto__'],
  ['idempotency-key', 'a b"c'],
  ['last-event-id', '-1'],
  ['last-event-id', '1e99'],
  ['last-event-id', 'x'.repeat(3_000)],
  ['accept', 'text/nothing'],
  ['accept-encoding', 'br;q=9, x'],
  ['authorization', 'Bearer'],
  ['authorization', 'Basic Og=='],
  ['authorization', `Bearer ${'x'.repeat(6_000)}`],
  ['x-request-id', '<script>'],
  ['x-request-id', 'x'.repeat(3_000)],
  ['content-encoding', 'gzip'],
  ['transfer-encoding', 'gzip, chunked'],
  ['expect', '100-continue'],
  ['x-http-method-override', 'DELETE'],
  ['x-forwarded-for', '1.2.3.4, ::1'],
  ['range', 'bytes=0-,0-,0-'],
  ['cookie', `a=${'x'.repeat(6_000)}`],
  ['origin', 'https://evil.example'],
  ['host', 'evil.example'],
  ['host', ''],
  ['upgrade', 'h2c'],
]
