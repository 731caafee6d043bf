/** Describes a refusal by a JSON Schema: the field, the permitted values, and the value that was sent. */
import type { FastifySchemaValidationError } from 'fastify'
import type { ProblemError } from './problem-schema.ts'

/** The error Fastify throws when a part of a request does not fit its schema. */
export interface SchemaFailure extends Error {
  readonly validation: readonly FastifySchemaValidationError[]
  readonly validationContext?: string
}

/** Fields that Ajv adds in verbose mode. */
interface VerboseError extends FastifySchemaValidationError {
  readonly data?: unknown
  readonly parentSchema?: SchemaWords
}

/** The part of a schema that says what is allowed. `x-allowed` says it in words where a pattern cannot. */
interface SchemaWords {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly maxItems?: number
  readonly maxProperties?: number
  readonly properties?: Readonly<Record<string, unknown>>
  readonly oneOf?: readonly { readonly required: readonly string[] }[]
  readonly propertyNames?: SchemaWords
  readonly 'x-allowed'?: string
}

/**
 * Ajv stops at the first fault of a request; of a fault inside another the outer one is last, and says it in
 * the reader's words.
 */
export function schemaFaults(failure: SchemaFailure): readonly ProblemError[] {
  const fault = failure.validation.at(-1) as VerboseError | undefined
  if (fault === undefined) return [{ pointer: '', detail: failure.message }]
  return [describe(fault, PART_NAMES[failure.validationContext ?? ''] ?? 'the body')]
}

const PART_NAMES: Readonly<Record<string, string>> = {
  body: 'the body',
  querystring: 'query parameter',
  params: 'path parameter',
}

function describe(fault: VerboseError, part: string): ProblemError {
  const schema = fault.parentSchema ?? {}
  const at = (key?: unknown) =>
    key === undefined ? fault.instancePath : `${fault.instancePath}/${escaped(String(key))}`
  switch (fault.keyword) {
    case 'required':
      return {
        pointer: at(fault.params['missingProperty']),
        detail: `${nameOf(at(fault.params['missingProperty']), part)} is required`,
      }
    case 'additionalProperties': {
      const pointer = at(fault.params['additionalProperty'])
      return { pointer, detail: `${nameOf(pointer, part)} is unknown; ${knownFields(schema)}` }
    }
    case 'minProperties':
      return {
        pointer: at(),
        detail: `${nameOf(at(), part)} must name at least one field; ${knownFields(schema)}`,
      }
    case 'propertyNames': {
      const allowed = whatIsAllowed(schema.propertyNames ?? {})
      return {
        pointer: at(),
        detail:
          `a name in ${nameOf(at(), part)} must be ${allowed}, got ` +
          `${shown(fault.params['propertyName'])}`,
      }
    }
    case 'oneOf': {
      const names = (schema.oneOf ?? []).flatMap(({ required }) => required)
      return {
        pointer: at(),
        detail:
          `${nameOf(at(), part)} must have exactly one of ${names.join(', ')}, got ` +
          `${given(names, fault.data)}`,
      }
    }
    case 'uniqueItems':
      return {
        pointer: at(fault.params['i']),
        detail: `${nameOf(at(), part)} must not contain the same item twice`,
      }
    default:
      return {
        pointer: at(),
        detail: `${nameOf(at(), part)} must be ${whatIsAllowed(schema)}, got ${shown(fault.data)}`,
      }
  }
}

/** Describes the values that a schema permits: `an integer from 0 to 1000, or null`. */
function whatIsAllowed(schema: SchemaWords): string {
  if (schema['x-allowed'] !== undefined) return schema['x-allowed']
  if (schema.enum !== undefined) return `one of ${schema.enum.map(String).join(', ')}`
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  return types.map((type) => (type === 'null' ? 'null' : ofOneType(type, schema))).join(', or ')
}

function ofOneType(type: string, schema: SchemaWords): string {
  switch (type) {
    case 'integer':
      return schema.minimum === undefined
        ? 'an integer'
        : `an integer from ${schema.minimum} to ${schema.maximum}`
    case 'string':
      return schema.maxLength === undefined
        ? 'a string'
        : `a string of ${schema.minLength ?? 0} to ${schema.maxLength} characters`
    case 'array':
      return schema.maxItems === undefined ? 'an array' : `an array of at most ${schema.maxItems} items`
    case 'object':
      return schema.maxProperties === undefined
        ? 'an object'
        : `an object of at most ${schema.maxProperties} fields`
    case 'boolean':
      return 'true or false'
    default:
      return `a ${type}`
  }
}

function knownFields(schema: SchemaWords): string {
  const names = Object.keys(schema.properties ?? {})
  return names.length === 0 ? 'none are accepted' : `known: ${names.join(', ')}`
}

function nameOf(pointer: string, part: string): string {
  if (pointer === '') return part
  const name = pointer.slice(1).replaceAll('/', '.').replaceAll('~1', '/').replaceAll('~0', '~')
  return part === 'the body' ? name : `${part} ${name}`
}

function escaped(name: string): string {
  return name.slice(0, SHOWN_LENGTH).replaceAll('~', '~0').replaceAll('/', '~1')
}

const SHOWN_LENGTH = 60

/** How many of these fields the object has; what it is instead of an object. */
function given(names: readonly string[], value: unknown): string {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return shown(value)
  return String(names.filter((name) => Object.hasOwn(value, name)).length)
}

/** Returns the value that was sent, shortened to one line. */
function shown(value: unknown): string {
  if (value === undefined) return 'nothing'
  if (Array.isArray(value)) return `an array of length ${value.length}`
  if (typeof value === 'object' && value !== null) return 'an object'
  // JSON has no such number: 1e400, which would be shown as null, and null may be what is allowed.
  if (typeof value === 'number' && !Number.isFinite(value)) return 'a number that is too large'
  if (typeof value !== 'string' || value.length <= SHOWN_LENGTH) return JSON.stringify(value)
  return `${JSON.stringify(value.slice(0, SHOWN_LENGTH))}… (${value.length} characters)`
}
