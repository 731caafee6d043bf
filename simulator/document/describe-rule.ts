/** Describes rules in words, for the end of an error message. */
import { DURATION_FORMAT, formatDuration, RANGE_FORMAT } from './quantity.ts'
import type { Rule, RuleData } from './rule.ts'

/** Returns text that follows "must be": `a whole number from 0 to 1000`. */
export function describeRule(rule: Rule): string {
  switch (rule.kind) {
    case 'integer':
      return rule.min === rule.max ? `${rule.min}` : `a whole number from ${rule.min} to ${rule.max}`
    case 'number':
      return rule.above === undefined
        ? `a number from ${rule.min} to ${rule.max}`
        : `a number above ${rule.above}, at most ${rule.max}`
    case 'text':
      return rule.what ?? `text of 1 to ${rule.maxLength} characters`
    case 'choice':
      return rule.choices.length === 1 ? `${rule.choices[0]}` : `one of ${rule.choices.join(', ')}`
    case 'boolean':
      return 'true or false'
    case 'duration':
      return describeDuration(rule)
    case 'size':
      return `whole MiB from ${rule.min} to ${rule.max}, or text with Mi or Gi (24Gi)`
    case 'instant':
      return 'an instant from 1970 on in RFC 3339 (2026-01-01T00:00:00Z)'
    case 'integers':
      return `whole numbers from ${rule.min} to ${rule.max}: a list or ${RANGE_FORMAT}`
    case 'json':
      return 'any value'
    case 'nullable':
      return `${describeRule(rule.rule)}, or null`
    case 'list':
      return `a list of ${rule.minItems} to ${rule.maxItems} items`
    case 'pair':
      return 'a list of two values'
    case 'dictionary':
      return `a map from ${rule.keyWhat} to ${describeRule(rule.value)}`
    case 'record':
      return `a map of ${Object.keys(rule.fields).join(', ')}`
    case 'by_key':
      return `a map with one of the keys ${Object.keys(rule.records).join(', ')}`
    case 'by_value':
      return `a map whose ${rule.key} is one of ${Object.keys(rule.records).join(', ')}`
    case 'scalar_or':
      return `${describeRule(rule.scalar)}; or ${describeRule(rule.collection)}`
  }
}

function describeDuration({ min, max, bareMs }: Extract<RuleData, { kind: 'duration' }>): string {
  const written = bareMs ? `whole ms, or ${DURATION_FORMAT}` : DURATION_FORMAT
  return (
    `${written}${min === 0 ? ', or 0' : ''}, ` +
    `${min === 0 ? '' : `at least ${formatDuration(min)}, `}at most ${formatDuration(max)}`
  )
}
