import { describe, expect, test } from 'vitest'
import {
  AccessRegistry,
  MAX_SESSIONS,
  MAX_TOKENS,
} from '../../controller/engine/inputs/commands/access-registry.ts'
import { Transaction } from '../../controller/state/transaction.ts'
import type { Answer } from '../../controller/model/command.ts'
import { anAudit, aToken } from '../support/store-builders.ts'

/** Creates a registry whose transactions become durable when the test says so. */
function aBook(fault: string | null = null) {
  const waiting: (() => void)[] = []
  let turn = new Transaction()
  const written: Transaction['access'][] = []
  const book = new AccessRegistry({
    transaction: () => turn,
    whenDurable: (done) => void waiting.push(done),
    write: () => {
      if (turn.access === null) return
      written.push(turn.access)
      turn = new Transaction()
    },
    fault: () => fault,
  })
  return {
    book,
    written,
    now: () => turn.access,
    becomeDurable: () => waiting.splice(0).forEach((done) => done()),
  }
}

describe('The access registry', () => {
  test('accepts a new token at once, acknowledges it when it is durable, and revokes at once', () => {
    const { book, now, becomeDurable } = aBook()
    const answers: Answer<unknown>[] = []
    book.create(aToken({ id: 'a' }), (answer) => answers.push(answer))
    expect([book.token('a')?.name, answers, now()?.tokens.length]).toEqual(['alice', [], 1])
    becomeDurable()
    expect(answers).toEqual([{ ok: true, value: aToken({ id: 'a' }) }])
    book.revoke('a', (answer) => answers.push(answer))
    expect([book.size, book.token('a'), answers.length]).toEqual([0, undefined, 1])
    becomeDurable()
    expect(answers[1]).toEqual({ ok: true, value: null })
    expect(now()?.revokedTokenIds).toEqual(['a'])
  })

  test('holds a limited number of tokens, each id once', () => {
    const { book } = aBook()
    const refusals: string[] = []
    const note = (answer: Answer<unknown>) => void (answer.ok || refusals.push(answer.refusal.code))
    for (let n = 0; n < MAX_TOKENS; n++) book.create(aToken({ id: `t${n}` }), note)
    expect(refusals).toEqual([])
    book.create(aToken({ id: 't7' }), note)
    book.create(aToken({ id: 'one more' }), note)
    book.revoke('unknown', note)
    expect([refusals, book.size]).toEqual([['conflict', 'conflict', 'not_found'], MAX_TOKENS])
  })

  test('ends the oldest session where there are too many, and takes no room of tokens for them', () => {
    const { book, now } = aBook()
    const begin = (n: number) =>
      book.beginSession(aToken({ id: `session-${n}`, session: 's', createdAt: n }), () => {})
    for (let n = 0; n <= MAX_SESSIONS; n++) begin(n)
    expect([book.session('session-0'), book.session('session-1')?.id]).toEqual([undefined, 'session-1'])
    // The record and its removal are in one transaction.
    expect([now()?.revokedTokenIds, now()?.tokens.length]).toEqual([['session-0'], MAX_SESSIONS])
    expect([book.size, book.token('session-1')]).toEqual([0, undefined])
  })

  test('refuses changes once the store has failed', () => {
    const { book, now } = aBook('the disk is full')
    book.restore({ tokens: [aToken({ id: 'a' })], secrets: [], lastAuditSeq: 0 })
    const answers: Answer<unknown>[] = []
    book.create(aToken({ id: 'b' }), (answer) => answers.push(answer))
    book.revoke('a', (answer) => answers.push(answer))
    const refusal = { ok: false, refusal: { code: 'store_failed', detail: 'the disk is full' } }
    const { seq: _seq, ...entry } = anAudit()
    book.amend(book.begin(entry), entry)
    book.add(entry)
    book.used(aToken({ id: 'a' }), 1)
    expect([answers, [...book.tokens()].map(({ id }) => id), now()]).toEqual([
      [refusal, refusal],
      ['a'],
      null,
    ])
  })

  test('records the last use of a token at most once an hour', () => {
    const { book, written } = aBook()
    book.restore({ tokens: [aToken({ id: 'a', lastUsedAt: null })], secrets: [], lastAuditSeq: 0 })
    const hour = 3_600_000
    for (const at of [0, 1, hour - 1, hour, hour + 5, 2 * hour]) book.used(book.token('a') ?? aToken(), at)
    expect(written.map((access) => access?.tokens.map(({ lastUsedAt }) => lastUsedAt))).toEqual([
      [0],
      [hour],
      [2 * hour],
    ])
  })
})

describe('A transaction that another commit holds back', () => {
  function aHeldBook() {
    const turn = new Transaction()
    const book = new AccessRegistry({
      transaction: () => turn,
      whenDurable: () => {},
      write: () => {},
      fault: () => null,
    })
    return { book, turn }
  }
  const ignore = (): void => {}
  const secret = { owner: 'alice', name: 'KEY', sealed: 'x', updatedAt: 1 }

  test('does not add a token again that was used and then revoked', () => {
    const { book, turn } = aHeldBook()
    book.restore({ tokens: [aToken({ id: 'a', lastUsedAt: null })], secrets: [], lastAuditSeq: 0 })
    book.used(book.token('a') ?? aToken(), 1)
    book.revoke('a', ignore)
    expect(turn.access).toMatchObject({ tokens: [], revokedTokenIds: ['a'] })
  })

  test('holds the last change of a secret only', () => {
    const { book, turn } = aHeldBook()
    book.putSecret(secret, ignore)
    book.putSecret({ ...secret, sealed: 'y' }, ignore)
    expect(turn.access).toMatchObject({ secrets: [{ sealed: 'y' }], deletedSecrets: [] })
    book.deleteSecret('alice', 'KEY', ignore)
    expect(turn.access).toMatchObject({ secrets: [], deletedSecrets: [{ owner: 'alice', name: 'KEY' }] })
    book.putSecret(secret, ignore)
    expect(turn.access).toMatchObject({ secrets: [secret], deletedSecrets: [] })
  })
})

describe('The audit log', () => {
  const { seq: _seq, ...entry } = anAudit()

  test('commits a begun entry with the next change, and an added entry at once', () => {
    const { book, written, now } = aBook()
    book.restore({ tokens: [], secrets: [], lastAuditSeq: 41 })
    expect(book.begin(entry)).toBe(42)
    expect([written, now()?.audits.map(({ seq }) => seq)]).toEqual([[], [42]])
    book.amend(42, { ...entry, outcome: 'refused' })
    book.add(entry)
    expect(written.map((access) => access?.audits.map(({ seq, outcome }) => `${seq} ${outcome}`))).toEqual([
      ['42 accepted', '42 refused'],
      ['43 accepted'],
    ])
    book.settle()
    expect(written.length).toBe(2)
  })
})
