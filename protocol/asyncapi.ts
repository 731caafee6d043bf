/**
 * The AsyncAPI 3 document of the protocol, generated from the schemas of the messages and the list in
 * `conversations.ts`.
 */
import type { TSchema } from 'typebox'
import { CONVERSATIONS, SUBJECT_PARAMETERS } from './conversations.ts'
import type { Requester, Conversation, Operation } from './conversations.ts'
import { PROTOTYPE_NAMES } from './check.ts'
import { BODIES, ENVELOPE_HEAD } from './envelope.ts'
import { withTag } from './fields.ts'
import { MAX_MESSAGE_BYTES, PROTOCOL_VERSION } from './limits.ts'
import { DEFAULT_PREFIX } from './subjects.ts'

/** JSON Schema draft 7, which AsyncAPI 3 accepts. */
export type JsonSchema = { readonly [keyword: string]: unknown }

type Reference = { readonly $ref: string }
type Named<T> = Readonly<Record<string, T>>

export interface AsyncApiDocument {
  readonly asyncapi: '3.0.0'
  readonly info: Named<unknown>
  readonly defaultContentType: string
  readonly channels: Named<Channel>
  readonly operations: Named<ApiOperation>
  readonly components: { readonly messages: Named<Message>; readonly schemas: Named<JsonSchema> }
}

export interface Channel {
  /** Null: the inbox that the requester names in its request. */
  readonly address: string | null
  readonly description: string
  readonly parameters?: Named<{ readonly description: string }>
  readonly messages: Named<Reference>
}

export interface ApiOperation {
  readonly action: 'send' | 'receive'
  readonly channel: Reference
  readonly summary: string
  readonly messages: readonly Reference[]
  readonly reply?: { readonly channel: Reference; readonly messages: readonly Reference[] }
}

export interface Message {
  readonly name: string
  readonly contentType: string
  readonly payload: JsonSchema
}

const CONTENT_TYPE = 'application/json'

/**
 * Takes the controller's view: it receives what nodes and clients request, and sends what it requests of
 * nodes.
 */
export function asyncApiDocument(): AsyncApiDocument {
  const operations = operationsOf(BODIES)
  return {
    asyncapi: '3.0.0',
    info: {
      title: 'Headroom: controller and GPU servers',
      version: `${PROTOCOL_VERSION}.0.0`,
      description: DESCRIPTION,
      license: LICENSE,
    },
    defaultContentType: CONTENT_TYPE,
    channels: channelsOf(CONVERSATIONS),
    operations: Object.fromEntries(CONVERSATIONS.map((each) => [each.name, operationOf(each)])),
    components: {
      messages: Object.fromEntries(operations.map((op) => [op, messageOf(op)])),
      schemas: {
        field_name: { not: { enum: [...PROTOTYPE_NAMES] } },
        envelope: jsonSchemaOf(ENVELOPE_HEAD),
        ...Object.fromEntries(
          operations.map((op) => [op, jsonSchemaOf(withTag<TSchema>(BODIES[op], 'op', op))]),
        ),
      },
    },
  }
}

const LICENSE = { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' }

/**
 * What the codec refuses and JSON Schema cannot express; otherwise the two agree
 * (test/unit/asyncapi.test.ts).
 */
const CANNOT_SAY: readonly string[] = [
  `A message has at most ${MAX_MESSAGE_BYTES} bytes, and is JSON in UTF-8 without a byte order mark.`,
  'Lengths of texts count UTF-16 code units, while JSON Schema counts characters: a character outside ' +
    'the basic plane counts twice.',
  'A number with a range is never minus zero.',
]

const DESCRIPTION = `Messages between the controller, GPU servers and clients over core NATS.
"send" and "receive" are the controller's. The prefix \`${DEFAULT_PREFIX}\` of the subjects can be configured.
Every request is repeated, with the same \`id\`, until it is answered. Rules and reasons: docs/protocol.md.
Unknown fields are ignored, unknown operations refused.

Receivers also refuse what these schemas cannot express:
${CANNOT_SAY.map((each) => `- ${each}`).join('\n')}
`

function operationsOf(variants: Named<unknown>): readonly Operation[] {
  return Object.keys(variants) as Operation[]
}

// ── channels ─────────────────────────────────────────────────────────────────

/** Returns one channel for each subject, and one inbox channel for the answers to its requests. */
function channelsOf(conversations: readonly Conversation[]): Named<Channel> {
  const channels: Record<string, Channel> = {}
  for (const subject of new Set(conversations.map((each) => each.subject))) {
    const here = conversations.filter((each) => each.subject === subject)
    const name = channelName(subject)
    channels[name] = {
      address: subject,
      description: directionOf(here),
      parameters: parametersOf(subject),
      messages: referencesTo(here.flatMap((each) => each.requests)),
    }
    if (here.every(({ answers }) => answers.length === 0)) continue
    channels[answerChannelName(subject)] = {
      address: null,
      description: `Answers to requests on ${name}, in the inbox of the requester.`,
      messages: referencesTo(here.flatMap((each) => each.answers)),
    }
  }
  return channels
}

/** Example: `gpu.v1.node.{node_id}.hello` becomes the channel `node_hello`. */
function channelName(subject: string): string {
  const words = subject.slice(DEFAULT_PREFIX.length + 1).split('.')
  return words.filter((word) => !word.startsWith('{')).join('_')
}

function answerChannelName(subject: string): string {
  return `${channelName(subject)}_answer`
}

const DIRECTIONS: Readonly<Record<Requester, string>> = {
  node: 'Node to controller',
  client: 'Client to controller',
  controller: 'Controller to node',
}

function directionOf(conversations: readonly Conversation[]): string {
  if (conversations.every(({ answers }) => answers.length === 0)) return 'Controller to all: publish.'
  const directions = new Set(conversations.map(({ requester: asker }) => DIRECTIONS[asker]))
  return `${[...directions].join(', ')}: request.`
}

function parametersOf(subject: string): Named<{ readonly description: string }> {
  const names = [...subject.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
  return Object.fromEntries(names.map((name) => [name, { description: SUBJECT_PARAMETERS[name] as string }]))
}

function referencesTo(operations: readonly Operation[]): Named<Reference> {
  return Object.fromEntries(operations.map((op) => [op, { $ref: `#/components/messages/${op}` }]))
}

// ── operations and messages ──────────────────────────────────────────────────

function operationOf({
  subject,
  requester: asker,
  requests: says,
  answers,
  meaning,
}: Conversation): ApiOperation {
  const asked = `#/channels/${channelName(subject)}`
  const answered = `#/channels/${answerChannelName(subject)}`
  return {
    action: asker === 'controller' ? 'send' : 'receive',
    channel: { $ref: asked },
    summary: meaning,
    messages: says.map((op) => ({ $ref: `${asked}/messages/${op}` })),
    ...(answers.length === 0
      ? {}
      : {
          reply: {
            channel: { $ref: answered },
            messages: answers.map((op) => ({ $ref: `${answered}/messages/${op}` })),
          },
        }),
  }
}

function messageOf(op: Operation): Message {
  const body = {
    type: 'object',
    required: ['body'],
    properties: { body: { $ref: `#/components/schemas/${op}` } },
  }
  return {
    name: op,
    contentType: CONTENT_TYPE,
    payload: { allOf: [{ $ref: '#/components/schemas/envelope' }, body] },
  }
}

/**
 * Returns the schema as plain JSON. Unknown fields are ignored, except names that reach an object's
 * prototype.
 */
function jsonSchemaOf(schema: TSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_name, value: unknown) =>
    isObjectSchema(value) ? { ...value, propertyNames: { $ref: '#/components/schemas/field_name' } } : value,
  ) as JsonSchema
}

function isObjectSchema(value: unknown): value is JsonSchema {
  if (typeof value !== 'object' || value === null) return false
  return 'type' in value && [value.type].flat().includes('object') && 'properties' in value
}
