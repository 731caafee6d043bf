/**
 * Rules as JSON Schema 2020-12, for editors and other programs. The loader refuses everything the schema
 * refuses. The loader also checks rules across fields, limits of durations and sizes
 * written as text, and duplicate names.
 */
import { formatDuration } from './quantity.ts'
import type { Field, RecordData, Rule, RuleData } from './rule.ts'
import { writtenDefault } from './written-value.ts'

export type JsonSchema = { readonly [keyword: string]: unknown }

export function jsonSchemaOf(rule: Rule): JsonSchema {
  switch (rule.kind) {
    case 'integer':
      return { type: 'integer', minimum: rule.min, maximum: rule.max }
    case 'number':
      return {
        type: 'number',
        ...(rule.above === undefined ? { minimum: rule.min } : { exclusiveMinimum: rule.above }),
        maximum: rule.max,
      }
    case 'text':
      return {
        type: 'string',
        minLength: 1,
        maxLength: rule.maxLength,
        ...(rule.pattern === undefined ? {} : { pattern: rule.pattern.source }),
      }
    case 'choice':
      return choiceSchema(rule)
    case 'boolean':
      return { type: 'boolean' }
    case 'duration':
      return durationSchema(rule)
    case 'size':
      return {
        anyOf: [
          { type: 'integer', minimum: rule.min, maximum: rule.max },
          { type: 'string', pattern: '^\\d{1,12}(Mi|Gi)$' },
        ],
      }
    case 'instant':
      return {
        type: 'string',
        pattern: '^\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(\\.\\d{1,3})?([Zz]|[+-]\\d{2}:\\d{2})$',
      }
    case 'integers':
      return integersSchema(rule)
    case 'json':
      return {}
    case 'nullable':
      return nullableSchema(jsonSchemaOf(rule.rule))
    case 'list':
      return {
        type: 'array',
        items: jsonSchemaOf(rule.item),
        minItems: rule.minItems,
        maxItems: rule.maxItems,
      }
    case 'pair':
      return {
        type: 'array',
        prefixItems: [jsonSchemaOf(rule.first), jsonSchemaOf(rule.second)],
        items: false,
        minItems: 2,
        maxItems: 2,
      }
    case 'dictionary':
      return {
        type: 'object',
        propertyNames: { pattern: rule.key.source, description: rule.keyWhat },
        additionalProperties: jsonSchemaOf(rule.value),
        minProperties: rule.minKeys,
        maxProperties: rule.maxKeys,
      }
    case 'record':
      return recordSchema(rule)
    case 'by_key':
    case 'by_value':
      return { oneOf: Object.values(rule.records).map(jsonSchemaOf) }
    case 'scalar_or':
      return { anyOf: [jsonSchemaOf(rule.scalar), jsonSchemaOf(rule.collection)] }
  }
}

function recordSchema({ fields }: RecordData): JsonSchema {
  const entries = Object.entries(fields)
  const needed = entries.filter(([, { presence }]) => presence === 'required').map(([key]) => key)
  return {
    type: 'object',
    properties: Object.fromEntries(entries.map(([key, field]) => [key, fieldSchema(field)])),
    ...(needed.length === 0 ? {} : { required: needed }),
    additionalProperties: false,
  }
}

function fieldSchema(field: Field): JsonSchema {
  const byDefault = writtenDefault(field)
  const schema = jsonSchemaOf(field.rule)
  const { description: detail } = schema as { readonly description?: string }
  return {
    description: detail === undefined ? field.doc : `${field.doc} ${detail}.`,
    ...(byDefault === undefined ? {} : { default: byDefault }),
    ...withoutDescription(schema),
  }
}

function withoutDescription({ description: _, ...others }: JsonSchema): JsonSchema {
  return others
}

/** Puts each meaning next to its name, so that editors show it with the completion. */
function choiceSchema({ choices, meanings }: Extract<RuleData, { kind: 'choice' }>): JsonSchema {
  if (meanings === undefined) return choices.length === 1 ? { const: choices[0] } : { enum: choices }
  return { oneOf: choices.map((choice) => ({ const: choice, description: meanings[choice] })) }
}

function durationSchema({ min, max, bareMs }: Extract<RuleData, { kind: 'duration' }>): JsonSchema {
  const text = {
    type: 'string',
    pattern: '^\\d{1,15}(ms|s|m|h|d)$',
    description: `At most ${formatDuration(max)}`,
  }
  if (bareMs)
    return { anyOf: [text, { type: 'integer', minimum: min, maximum: max, description: 'Milliseconds' }] }
  return min === 0 ? { anyOf: [text, { const: 0 }] } : text
}

function integersSchema({ min, max, maxCount }: Extract<RuleData, { kind: 'integers' }>): JsonSchema {
  return {
    anyOf: [
      {
        type: 'array',
        items: { type: 'integer', minimum: min, maximum: max },
        minItems: 1,
        maxItems: maxCount,
      },
      { type: 'string', pattern: '^\\d{1,10}\\.\\.\\d{1,10}(:\\d{1,10})?$' },
    ],
  }
}

function nullableSchema(schema: JsonSchema): JsonSchema {
  return { anyOf: [schema, { type: 'null' }] }
}
