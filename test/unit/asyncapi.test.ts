import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { Ajv } from 'ajv'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { asyncApiDocument } from '../../protocol/asyncapi.ts'
import type { AsyncApiDocument } from '../../protocol/asyncapi.ts'
import { decode, encode } from '../../protocol/codec.ts'
import { CONVERSATIONS } from '../../protocol/conversations.ts'
import type { Envelope } from '../../protocol/envelope.ts'
import { clientSubject, leaderSubject, nodeSubject } from '../../protocol/subjects.ts'
import type { ClientVerb, NodeVerb } from '../../protocol/subjects.ts'
import { mayBeAccepted, validatorOf } from '../support/asyncapi-validators.ts'
import { holds } from '../support/drawn-cases.ts'
import { headroom } from '../support/headroom-command.ts'
import { ODD_VALUES, OPERATIONS, envelopeOf, pathsOf, withValueAt } from '../support/message-arbitraries.ts'

const SEED = 20_261_120
const FILE = 'test/unit/asyncapi.test.ts'
const COMMITTED = 'docs/asyncapi.yaml'
const ROOT = new URL('../../', import.meta.url)

const document = asyncApiDocument()

describe('the AsyncAPI document', () => {
  it('equals the committed file, which `headroom protocol asyncapi` renews', async () => {
    const { code, stdout } = await headroom(['protocol', 'asyncapi'])
    expect(code).toBe(0)
    expect(readFileSync(new URL(COMMITTED, ROOT), 'utf8')).toBe(stdout)
    expect(parse(stdout)).toEqual(document)
  })

  it('is equal in JSON', async () => {
    const { stdout } = await headroom(['protocol', 'asyncapi', '--json'])
    expect(JSON.parse(stdout)).toEqual(document)
  })

  it('is valid according to the meta-schema of AsyncAPI 3', () => {
    const { isValid, errors } = heldAgainstMetaSchema(document)
    expect(errors).toEqual([])
    expect(isValid).toBe(true)
  })

  it('is invalid with a wrong action or with a channel without messages', () => {
    const wrongAction = {
      ...document,
      operations: { hello: { ...document.operations['hello'], action: 'shout' } },
    }
    const wrongChannel = { ...document, channels: { node_hello: { address: 7 } } }
    for (const wrong of [wrongAction, wrongChannel]) expect(heldAgainstMetaSchema(wrong).isValid).toBe(false)
  })

  it('resolves every reference', () => {
    const references = referencesIn(document)
    expect(references.length).toBeGreaterThan(60)
    expect(references.filter((reference) => lookUp(reference) === undefined)).toEqual([])
  })
})

describe('the document covers the whole protocol:', () => {
  it('every operation of the codec has a message, a schema, and a conversation', () => {
    expect(Object.keys(document.components.messages)).toEqual(OPERATIONS)
    for (const op of OPERATIONS) expect(document.components.schemas).toHaveProperty(op)
    const said = CONVERSATIONS.flatMap(({ requests: says, answers }) => [...says, ...answers])
    expect(new Set(said)).toEqual(new Set(OPERATIONS))
  })

  it('every subject is the address of one channel', () => {
    // Typed, so that the compiler reports a verb that is missing here.
    const verbs: Readonly<Record<NodeVerb, true>> = {
      hello: true,
      heartbeat: true,
      event: true,
      command: true,
      telemetry: true,
    }
    const asked: Readonly<Record<ClientVerb, true>> = {
      submit: true,
      cancel: true,
      get: true,
      keepalive: true,
    }
    const expected = [
      ...Object.keys(verbs).map((verb) => nodeSubject('{node_id}', verb as NodeVerb)),
      ...Object.keys(asked).map((verb) => clientSubject('{client_id}', verb as ClientVerb)),
      leaderSubject(),
    ]
    const addresses = Object.values(document.channels).flatMap(({ address }) =>
      address === null ? [] : [address],
    )
    expect(addresses.toSorted(byText)).toEqual(expected.toSorted(byText))
  })

  it('every conversation is an operation with request and reply, or a publication', () => {
    expect(Object.keys(document.operations)).toEqual(CONVERSATIONS.map(({ name }) => name))
    for (const { name, subject, requester: asker, requests: says, answers } of CONVERSATIONS) {
      const operation = document.operations[name]
      expect(operation?.action).toBe(asker === 'controller' ? 'send' : 'receive')
      expect(lookUp(operation?.channel.$ref ?? '')).toMatchObject({ address: subject })
      expect(operation?.messages.map(messageNameOf)).toEqual(says)
      if (answers.length > 0)
        expect(lookUp(operation?.reply?.channel.$ref ?? '')).toMatchObject({ address: null })
      expect(operation?.reply?.messages.map(messageNameOf) ?? []).toEqual(answers)
    }
  })
})

describe('descriptions', () => {
  it('Every number and flag of every message has a description', () => {
    expect(undescribed('', document.components.schemas)).toEqual([])
  })
})

/** Returns the places of the schemas of numbers and flags that have no description. */
function undescribed(place: string, value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  const { type, description, const: only } = value as Readonly<Record<string, unknown>>
  const isQuantity = ['integer', 'boolean'].includes(String([type].flat()[0])) && only === undefined
  return [
    ...(isQuantity && typeof description !== 'string' ? [place] : []),
    ...Object.entries(value).flatMap(([name, inner]) => undescribed(`${place}/${name}`, inner)),
  ]
}

describe('the schemas of the document agree with the codec:', () => {
  it.each(OPERATIONS)('every message %s is valid', (op) => {
    const validate = validatorOf(op)
    const property = fc.property(envelopeOf(op), (envelope) => {
      expect(validate?.(JSON.parse(new TextDecoder().decode(encode(envelope))))).toBe(true)
    })
    holds(property, 50, FILE)
  })

  it('a message is valid only as its own operation', () => {
    for (const op of OPERATIONS) {
      const [envelope] = fc.sample(envelopeOf(op), { seed: SEED, numRuns: 1 })
      expect(OPERATIONS.filter((other) => validatorOf(other)?.(envelope) === true)).toEqual([op])
    }
  })

  it('a message with one value replaced or removed is accepted by both or refused by both', () => {
    const seen = { accepted: 0, refused: 0 }
    const property = fc.property(
      anyMessage(),
      fc.nat(),
      fc.constantFrom(...ODD_VALUES),
      (envelope, at, value) => {
        const paths = pathsOf(envelope)
        agree(JSON.stringify(withValueAt(envelope, paths[at % paths.length] as string, value)), seen)
      },
    )
    holds(property, 2_000, FILE)
    expect(seen.accepted).toBeGreaterThan(30)
    expect(seen.refused).toBeGreaterThan(700)
  })

  it('both ignore one additional field, and both refuse a field name of the prototype', () => {
    const seen = { accepted: 0, refused: 0 }
    const name = fc.constantFrom('later', 'op2', 'toString', '', '__proto__', 'constructor', 'prototype')
    const property = fc.property(anyMessage(), fc.nat(), name, (envelope, at, field) => {
      agree(withFieldAdded(JSON.stringify(envelope), at, field), seen)
    })
    holds(property, 1_000, FILE)
    expect(seen.accepted).toBeGreaterThan(200)
    expect(seen.refused).toBeGreaterThan(200)
  })
})

describe('rules that a schema cannot express, as listed in the document:', () => {
  const text = JSON.stringify(fc.sample(envelopeOf('stop'), { seed: SEED, numRuns: 1 })[0])
  const withId = (id: string): string => JSON.stringify({ ...(JSON.parse(text) as Envelope), id })

  it.each([
    ['Lengths of texts', withId('🎈'.repeat(150))],
    ['never minus zero', text.replace(/"seq":\d+/, '"seq":-0')],
    ['at most 262144 bytes', `${text}${' '.repeat(262_144)}`],
    ['byte order mark', `\ufeff${text}`],
  ])('%s', (listedAs, refused) => {
    expect(decode(new TextEncoder().encode(refused)).ok).toBe(false)
    expect(mayBeAccepted(JSON.parse(refused.replace('\ufeff', '')))).toBe(true)
    expect(document.info['description']).toContain(listedAs)
  })
})

function heldAgainstMetaSchema(candidate: unknown): { readonly isValid: boolean; readonly errors: unknown } {
  const specs = createRequire(import.meta.url)('@asyncapi/specs') as {
    readonly schemas: Readonly<Record<string, object>>
  }
  // The bundle already contains draft 7.
  const ajv = new Ajv({ strict: false, validateFormats: false, meta: false, validateSchema: false })
  const validate = ajv.compile(specs.schemas['3.0.0'] as object)
  const isValid = validate(candidate)
  return { isValid, errors: validate.errors ?? [] }
}

function referencesIn(value: unknown): readonly string[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    key === '$ref' ? [inner as string] : referencesIn(inner),
  )
}

function lookUp(reference: string): unknown {
  const path = reference.replace(/^#\//, '').split('/')
  return path.reduce<unknown>(
    (inner, key) => (inner as Record<string, unknown> | undefined)?.[key],
    document satisfies AsyncApiDocument,
  )
}

/**
 * An operation refers to a message by its place in a channel, and that place refers to the message itself.
 */
function messageNameOf(reference: { readonly $ref: string }): string | undefined {
  const { $ref } = lookUp(reference.$ref) as { readonly $ref: string }
  return (lookUp($ref) as { readonly name: string }).name
}

function anyMessage(): fc.Arbitrary<Envelope> {
  return fc.oneof(...OPERATIONS.map(envelopeOf))
}

function agree(text: string, seen: { accepted: number; refused: number }): void {
  const { ok } = decode(new TextEncoder().encode(text))
  seen[ok ? 'accepted' : 'refused'] += 1
  expect(mayBeAccepted(JSON.parse(text))).toBe(ok)
}

/** Edits the text, because an assignment to `__proto__` would not create a field. */
function withFieldAdded(text: string, at: number, name: string): string {
  const places = [...text.matchAll(/\{(?=")/g)].map((match) => match.index + 1)
  const place = places[at % places.length] as number
  return `${text.slice(0, place)}${JSON.stringify(name)}:{"deep":[1]},${text.slice(place)}`
}

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
