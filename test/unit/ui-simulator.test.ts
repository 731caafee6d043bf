/** Computations of the simulator pages: times, lines, compared figures, and permissions in a session. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { SessionBody } from '../../controller/api/auth/sign-in-schema.ts'
import { readFaults } from '../../simulator/session/read-faults.ts'
import { answerOf } from '../../ui/pages/simulator/answer.ts'
import { FAULT_TEMPLATES } from '../../ui/pages/simulator/fault-templates.ts'
import { figuresOf } from '../../ui/pages/simulator/figures.ts'
import { lineCount, offsetOf } from '../../ui/scenario/text-lines.ts'
import { clockWords } from '../../ui/format/figures.ts'
import { readClock, scrubEnd, speedWords, virtualInstant } from '../../ui/pages/simulator/time.ts'
import { whyNot, type Role } from '../../ui/state/rights.ts'

test('A virtual time is formatted and parsed', () => {
  expect([0, 59.9, 3_723, 90_061, null].map(clockWords)).toEqual([
    '0:00:00',
    '0:00:59',
    '1:02:03',
    '1 d 1:01:01',
    '—',
  ])
  expect(['5400', '90:00', '1:30:00', ' 1.5 '].map(readClock)).toEqual([5_400, 5_400, 5_400, 1.5])
  expect(['', 'x', '-1', '1:2:3:4', '1e3'].map(readClock)).toEqual([null, null, null, null, null])
  expect([1, 600, null].map(speedWords)).toEqual(['×1', '×600', 'max'])
  expect(virtualInstant('2026-01-01T01:02:03.456Z')).toBe('2026-01-01 01:02:03 UTC')
})

test('The scrubber ends with the session, or beyond the reached time if there is no end', () => {
  expect(scrubEnd({ ends_after_seconds: 7_200, virtual_seconds: 10 })).toBe(7_200)
  expect(scrubEnd({ ends_after_seconds: null, virtual_seconds: 0 })).toBe(3_600)
  expect(scrubEnd({ ends_after_seconds: null, virtual_seconds: 4_000 })).toBe(7_200)
})

test('A position in a text is found by line and column', () => {
  expect(lineCount('a\nb\n')).toBe(3)
  expect([offsetOf('ab\ncd', 1, 1), offsetOf('ab\ncd', 2, 2), offsetOf('ab\ncd', 9, 1)]).toEqual([0, 4, 5])
})

test('An answer is a number if it looks like one', () => {
  expect(['8', ' 1.5 ', '-2', 'node-2', '1e5'].map(answerOf)).toEqual([8, 1.5, -2, 'node-2', '1e5'])
})

test('Only different figures are shown side by side', () => {
  expect(figuresOf({ a: 1, same: 2, in: { b: 0.123 }, list: [1] }, { a: 2, same: 2, in: {} })).toEqual([
    { name: 'a', own: '1', reference: '2' },
    { name: 'in.b', own: '0.12', reference: '—' },
  ])
})

test.each(FAULT_TEMPLATES)('$name: the initial form content is valid', ({ of }) => {
  const nodes = [{ name: 'node-0', gpuCount: 1 }] as unknown as Parameters<typeof readFaults>[1]
  expect(readFaults(JSON.stringify([{ at: '1m', ...of('node-0') }]), nodes, 'faults')).toHaveLength(1)
})

describe('permissions in a session', () => {
  const who = (role: Role, name = 'ann') =>
    ({ caller: { name, role, expires_at: null } }) as unknown as SessionBody
  const sim = { mode: 'sim', owner: 'ann' } as const

  test('A submitter has the role operator in an own session, and only views other sessions', () => {
    expect(whyNot(who('submitter'), 'operator', sim)).toBeNull()
    expect(whyNot(who('submitter'), 'admin', sim)).toContain('requires role admin')
    expect(whyNot(who('submitter', 'bob'), 'submitter', sim)).toContain('belongs to another user')
    expect(whyNot(who('submitter', 'bob'), 'viewer', sim)).toBeNull()
    expect(whyNot(who('viewer'), 'submitter', sim)).not.toBeNull()
    expect(whyNot(who('operator', 'bob'), 'operator', sim)).toBeNull()
    expect(whyNot(who('admin', 'bob'), 'admin', sim)).toBeNull()
  })

  test('The live cluster has no owner', () => {
    expect(whyNot(who('submitter'), 'operator', { mode: 'live', owner: null })).toContain(
      'requires role operator',
    )
    expect(whyNot(null, 'viewer', { mode: 'live', owner: null })).toContain('Checking your permissions')
    expect(whyNot({ caller: null } as unknown as SessionBody, 'viewer', sim)).toBe('Sign in first.')
  })
})

test('The pages of a cluster never name an API address themselves', () => {
  const pages = join(import.meta.dirname, '../../ui/pages')
  const files = readdirSync(pages, { recursive: true, encoding: 'utf8' }).filter(
    (name) => /\.tsx?$/.test(name) && !name.startsWith('simulator/'),
  )
  expect(files.length).toBeGreaterThan(20)
  const speaking = files.filter((name) =>
    /new ApiClient|\bfetch\(|['"`]\/api\//.test(readFileSync(join(pages, name), 'utf8')),
  )
  expect(speaking).toEqual([])
})
