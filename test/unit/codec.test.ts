import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MessageTooLargeError, decode, encode } from '../../protocol/codec.ts'
import type { Body, Envelope } from '../../protocol/envelope.ts'
import type { Boot } from '../../protocol/message-fields.ts'
import type { Hello, TaskReport } from '../../protocol/messages.ts'
import type { StartCommand } from '../../protocol/start-command.ts'
import {
  MAX_ATTEMPTS_PER_NODE,
  MAX_DETAIL_LENGTH,
  MAX_EVENTS,
  MAX_MESSAGE_BYTES,
  PROTOCOL_VERSION,
} from '../../protocol/limits.ts'
import { mayBeAccepted } from '../support/asyncapi-validators.ts'
import { holds } from '../support/drawn-cases.ts'
import { ODD_VALUES, OPERATIONS, envelopeOf, pathsOf, withValueAt } from '../support/message-arbitraries.ts'

const FILE = 'test/unit/codec.test.ts'
const BOOT: Boot = { counter: 3, random: 'c0ffee00' }
const TASK_ID = '6b1f4a0e-0b5c-4e53-a7a7-8c6f7d1a2b3c'

const start: StartCommand = {
  op: 'start',
  task_id: TASK_ID,
  attempt: 2,
  valid_until_mono: 20_000,
  node_boot: BOOT,
  gpus: [0, 3],
  vram_mib: 16_384,
  gpu_mode: 'shared',
  noswap: 0,
  priority: 2,
  on_node_loss: 'wait',
  command: ['python', 'train.py', '--note', 'grüße 🎈'],
}

const task: TaskReport = {
  task_id: TASK_ID,
  attempt: 2,
  residency: 'swapped_out',
  generation: 4,
  gpus: [0],
  vram_mib: 16_384,
  wants_gpu: false,
  idle_ms: 1200,
}

const hello: Hello = {
  op: 'hello',
  node_id: 'n-1',
  name: 'alpha',
  address: '10.0.0.7',
  gpus: [
    { index: 0, model: 'A100', physical_mib: 40_960, foreign_mib: 12 },
    { index: 1, model: 'A100', physical_mib: 40_960, foreign_mib: 0 },
  ],
  host_swap_mib: 131_072,
  signals_wanted: true,
  device: 'simulated',
  allow_exec: true,
  tasks: [task],
  finished_unacked: [{ task_id: 'done', attempt: 1 }],
}

describe('an optional field', () => {
  it('is checked for its range, and unknown fields next to it are dropped', () => {
    const sent = (body: object) => decodeJson({ ...sealed(hello), body })
    expect(sent({ ...hello, host_link_mib_per_s: 12_288 })).toMatchObject({
      ok: true,
      envelope: { body: { host_link_mib_per_s: 12_288 } },
    })
    for (const wrong of [0, -1, 1.5, null, '12288', 16_777_217]) {
      expect(sent({ ...hello, host_link_mib_per_s: wrong })).toMatchObject({
        ok: false,
        why: expect.stringContaining('body.host_link_mib_per_s: must be') as string,
      })
    }
    expect(sent({ ...hello, unheard_of: 1 })).toEqual({ ok: true, envelope: sealed(hello) })
  })
})

describe('a message', () => {
  it.each(OPERATIONS)('%s is decoded as it was encoded', (op) => {
    const property = fc.property(envelopeOf(op), (envelope) => {
      expect(decode(encode(envelope))).toEqual({ ok: true, envelope })
    })
    holds(property, 150, FILE)
  })

  it('contains only the fields of the schema, at any depth', () => {
    const known = sealed(hello)
    const body = { ...hello, extra: { deep: [1] }, tasks: [{ ...task, colour: 'red' }] }
    expect(decodeJson({ ...known, later: true, boot: { ...BOOT, host: 'x' }, body })).toEqual({
      ok: true,
      envelope: known,
    })
  })

  it('of another version is refused whatever else it contains', () => {
    expect(decodeJson({ v: 2, body: 'who knows' })).toEqual({
      ok: false,
      reason: 'wrong_version',
      why: 'v: must be 1, not 2',
    })
    expect(decodeJson({})).toEqual({ ok: false, reason: 'wrong_version', why: 'v: must be 1, not missing' })
  })

  it('with an unknown operation is refused, also if an object has a member of that name', () => {
    for (const op of ['reboot', 'toString', 'constructor', '__proto__', '', 7, null]) {
      expect(why({ ...sealed(start), body: { ...start, op } })).toMatch(
        /^body\.op: must be one of hello, heartbeat, /,
      )
    }
  })

  it('that is not JSON in UTF-8 or not an object is refused', () => {
    for (const bytes of [
      [],
      [0x7b],
      [0xff, 0xfe],
      [0xef, 0xbb, 0xbf, 0x7b, 0x7d],
      [0x22, 0xc3, 0x28, 0x22],
    ]) {
      expect(decode(Uint8Array.from(bytes))).toEqual({
        ok: false,
        reason: 'not_json',
        why: 'message: is not JSON in UTF-8',
      })
    }
    for (const value of [null, 1, 'hello', true, []])
      expect(why(value)).toMatch(/^message: must be an object, not /)
    expect(decode(new TextEncoder().encode('['.repeat(200_000))).ok).toBe(false)
  })

  it('above 256 KiB is neither sent nor read', () => {
    const long = sealed({ ...start, command: Array.from({ length: 70 }, () => 'x'.repeat(4096)) })
    expect(() => encode(long)).toThrow(MessageTooLargeError)
    expect(decodeJson(long)).toMatchObject({
      ok: false,
      why: expect.stringMatching(/^message: \d+ bytes, the limit is 262144$/) as string,
    })
  })
})

describe('a field', () => {
  const refusals: readonly [path: string, value: unknown, why: string | RegExp][] = [
    ['id', '', 'id: must be a text of 1 to 200 characters, without control characters, not ""'],
    ['sent_mono', -1, 'sent_mono: must be a whole number from 0 to 2251799813685248, not -1'],
    ['seq', 1.5, 'seq: must be a whole number from 0 to 2251799813685248, not 1.5'],
    ['seq', '7', 'seq: must be a whole number from 0 to 2251799813685248, not "7"'],
    ['epoch', 2 ** 53, 'epoch: must be a whole number from 0 to 2251799813685248, not 9007199254740992'],
    ['boot', null, 'boot: must be an object, not null'],
    [
      'boot.counter',
      undefined,
      'boot.counter: must be a whole number from 0 to 2251799813685248, not missing',
    ],
    ['body', [], 'body: must be an object, not a list of 0 items'],
    ['body.attempt', 0, 'body.attempt: must be a whole number from 1 to 2147483647, not 0'],
    [
      'body.task_id',
      'a\nb',
      'body.task_id: must be a text of 1 to 200 characters, without control characters, not "a\\nb"',
    ],
    [
      'body.task_id',
      'x'.repeat(201),
      /^body\.task_id: must be a text of 1 to 200 characters, .*, not "x{39}…$/,
    ],
    ['body.task_id', '\ud800', /^body\.task_id: must be a text /],
    ['body.gpus', [], 'body.gpus: must be a list of 1 to 16 items, not a list of 0 items'],
    ['body.gpus', [2, 2], 'body.gpus: must not hold the same number twice'],
    ['body.gpus', [0, 16], 'body.gpus[1]: must be a whole number from 0 to 15, not 16'],
    ['body.gpus', { 0: 1, length: 1 }, 'body.gpus: must be a list of 1 to 16 items, not an object'],
    ['body.vram_mib', 0, 'body.vram_mib: must be a whole number from 1 to 16777216, not 0'],
    ['body.gpu_mode', 'Shared', 'body.gpu_mode: must be "shared", "exclusive", not "Shared"'],
    ['body.noswap', true, 'body.noswap: must be 0, 1, not true'],
    ['body.priority', 5, 'body.priority: must be 0, 1, 2, 3, 4, not 5'],
    [
      'body.command',
      ['a\0b'],
      'body.command[0]: must be a text of 0 to 4096 characters, without NUL, not "a\\u0000b"',
    ],
    ['body.command', 'ls', 'body.command: must be a list of 1 to 256 items, not "ls" (null is allowed)'],
  ]
  it.each(refusals)('%s with the value %j is refused by name', (path, value, expected) => {
    expect(why(withValueAt(sealed(start), path, value))).toEqual(
      expected instanceof RegExp ? expect.stringMatching(expected) : expected,
    )
  })

  it('of each kind is refused when it is missing', () => {
    for (const path of pathsOf(sealed(start)).filter((each) => !/\d/.test(each))) {
      expect(why(withValueAt(sealed(start), path, undefined))).toMatch(
        new RegExp(`^${path}: must be .*, not missing`),
      )
    }
  })

  it('with a name that leads to the prototype is refused, not ignored', () => {
    for (const name of ['__proto__', 'constructor', 'prototype']) {
      const evil = JSON.stringify(sealed(hello)).replace(
        '"tasks":[{',
        `"tasks":[{"${name}":{"isAdmin":true},`,
      )
      expect(decode(new TextEncoder().encode(evil))).toEqual({
        ok: false,
        reason: 'bad_field',
        why: `body.tasks[0].${name}: is not allowed as a field name`,
      })
    }
    expect(({} as { isAdmin?: boolean }).isAdmin).toBe(undefined)
  })

  it('index of a GPU is its place in the list', () => {
    const gpus = hello.gpus.toReversed()
    expect(why(sealed({ ...hello, gpus }))).toBe('body.gpus[0].index: must be 0, its place in the list')
  })

  it('is never minus zero', () => {
    const text = JSON.stringify(sealed(start)).replace('"seq":17', '"seq":-0')
    expect(decode(new TextEncoder().encode(text))).toEqual({
      ok: false,
      reason: 'bad_field',
      why: expect.stringMatching(/^seq: must be a whole number/) as string,
    })
  })

  it('may be null only where the table says so', () => {
    expect(decode(encode(sealed({ ...start, command: null }))).ok).toBe(true)
    expect(why(withValueAt(sealed(start), 'body.gpus', null))).toBe(
      'body.gpus: must be a list of 1 to 16 items, not null',
    )
  })
})

describe('a message of maximum length', () => {
  it('has room for a snapshot with the maximum number of attempts of a node', () => {
    const tasks = Array.from({ length: MAX_ATTEMPTS_PER_NODE }, () => ({
      ...task,
      gpus: [...Array(16).keys()],
      idle_ms: 86_400_000,
    }))
    expect(encode(sealed({ ...hello, tasks, finished_unacked: [] })).byteLength).toBeLessThan(
      MAX_MESSAGE_BYTES,
    )
  })

  it('has room for the maximum number of events, and one more is refused', () => {
    const entry = {
      kind: 'finished',
      n: 1,
      task_id: TASK_ID,
      attempt: 1,
      outcome: 'failed',
      exit_code: 1,
    } as const
    const events = (count: number, detail: string) =>
      sealed({
        op: 'events',
        node_id: 'n-1',
        entries: Array.from({ length: count }, () => ({ ...entry, detail })),
      })
    expect(decode(encode(events(MAX_EVENTS, 'x'.repeat(MAX_DETAIL_LENGTH)))).ok).toBe(true)
    expect(why(events(MAX_EVENTS + 1, ''))).toBe(
      `body.entries: must be a list of 1 to ${MAX_EVENTS} items, not a list of 257 items`,
    )
    expect(why(events(1, 'x'.repeat(MAX_DETAIL_LENGTH + 1)))).toMatch(
      /^body\.entries\[0\]\.detail: must be a text of 0 to 512 characters/,
    )
  })
})

describe('hostile bytes', () => {
  it('never cause an exception, and an accepted message satisfies the schema', () => {
    let accepted = 0
    const property = fc.property(hostileBytes(), (bytes) => {
      const decoded = decode(bytes)
      if (!decoded.ok) return void expect(decoded.why).toMatch(/^[a-z_]/)
      accepted += 1
      expect(mayBeAccepted(decoded.envelope)).toBe(true)
      expect(decode(encode(decoded.envelope))).toEqual(decoded)
    })
    holds(property, 5_000, FILE)
    expect(accepted).toBeGreaterThan(150)
  })

  it('with one value replaced are accepted exactly if the schema allows that value', () => {
    let refused = 0
    const property = fc.property(
      fc.oneof(...OPERATIONS.map(envelopeOf)),
      fc.nat(),
      fc.constantFrom(...ODD_VALUES),
      (envelope, at, value) => {
        const paths = pathsOf(envelope)
        const changed: unknown = JSON.parse(
          JSON.stringify(withValueAt(envelope, paths[at % paths.length] as string, value)),
        )
        const isAccepted = decodeJson(changed).ok
        if (!isAccepted) refused += 1
        expect(isAccepted).toBe(mayBeAccepted(changed))
      },
    )
    holds(property, 2_500, FILE)
    expect(refused).toBeGreaterThan(1_000)
  })
})

function hostileBytes(): fc.Arbitrary<Uint8Array> {
  // Texts that are all as long as they may be do not fit into one message.
  const fits = (envelope: Envelope): boolean => JSON.stringify(envelope).length < MAX_MESSAGE_BYTES / 2
  const sent = fc
    .oneof(...OPERATIONS.map(envelopeOf))
    .filter(fits)
    .map(encode)
  const cut = fc.tuple(sent, fc.nat()).map(([bytes, at]) => bytes.slice(0, at % bytes.length))
  const flipped = fc
    .tuple(sent, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 3 }))
    .map(([bytes, flips]) => {
      const changed = bytes.slice()
      for (const [at, value] of flips) changed[at % changed.length] = value
      return changed
    })
  // Bytes that occur in messages: such changes stay valid JSON far more often.
  const swapped = fc
    .tuple(sent, fc.nat(), fc.constantFrom(...'0123456789-.eE"{}[],:tfn\\u '))
    .map(([bytes, at, character]) => {
      const changed = bytes.slice()
      changed[at % changed.length] = character.charCodeAt(0)
      return changed
    })
  const spliced = fc
    .tuple(sent, sent, fc.nat(), fc.nat())
    .map(([a, b, i, j]) => Uint8Array.from([...a.slice(0, i % a.length), ...b.slice(j % b.length)]))
  const json = fc.json().map((text) => new TextEncoder().encode(text))
  return fc.oneof(fc.uint8Array({ maxLength: 300 }), json, sent, cut, flipped, swapped, spliced)
}

function sealed(body: Body): Envelope {
  return { v: PROTOCOL_VERSION, id: '3.17', sent_mono: 1234, boot: BOOT, seq: 17, epoch: 5, body }
}

function decodeJson(value: unknown): ReturnType<typeof decode> {
  return decode(new TextEncoder().encode(JSON.stringify(value)))
}

function why(value: unknown): string {
  const decoded = decodeJson(value)
  return decoded.ok ? 'accepted' : decoded.why
}
