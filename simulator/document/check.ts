/**
 * Checks a document against a rule. Returns the checked value, or problems with position, error and allowed
 * values.
 */
import { checkScalar, shownScalar } from './check-scalar.ts'
import { describeRule } from './describe-rule.ts'
import type { DocMap, DocNode } from './doc-node.ts'
import { nearestName } from './nearest-name.ts'
import type { Path, ProblemList } from './problem.ts'
import { parseRange, rangeCount, rangeValues } from './quantity.ts'
import type { RecordCheck, RecordData, Rule, RuleData, ScalarData } from './rule.ts'

/** Returns the value with all defaults filled in. Use it only if `problems` is empty. */
export function check<T>(node: DocNode, rule: Rule<T>, problems: ProblemList): T {
  return new Checker(problems).value(node, rule, null) as T
}

/** Depth is bounded by the document. The result of a method that reported a problem is never used. */
class Checker {
  readonly #problems: ProblemList

  constructor(problems: ProblemList) {
    this.#problems = problems
  }

  value(node: DocNode, rule: Rule, path: Path | null): unknown {
    if (node.kind === 'broken') return undefined
    switch (rule.kind) {
      case 'nullable':
        return this.#nullable(node, rule, path)
      case 'list':
        return this.#list(node, rule, path)
      case 'pair':
        return this.#pair(node, rule, path)
      case 'integers':
        return this.#integers(node, rule, path)
      case 'dictionary':
        return this.#dictionary(node, rule, path)
      case 'record':
        return this.#record(node, rule, path)
      case 'by_key':
        return this.#byKey(node, rule, path)
      case 'by_value':
        return this.#byValue(node, rule, path)
      case 'scalar_or':
        return this.value(node, node.kind === 'scalar' ? rule.scalar : rule.collection, path)
      case 'json':
        return this.#json(node)
      case 'integer':
      case 'number':
      case 'text':
      case 'choice':
      case 'boolean':
      case 'duration':
      case 'size':
      case 'instant':
        return this.#scalar(node, rule, path)
    }
  }

  #scalar(node: DocNode, rule: ScalarData, path: Path | null, allowed: Rule = rule): unknown {
    if (node.kind !== 'scalar') return this.#wrongKind(node, allowed, path)
    const checked = checkScalar(node.value, rule, allowed)
    if (checked.ok) return checked.value
    return this.#problems.add(node.offset, path, checked.detail)
  }

  #nullable(node: DocNode, nullable: Extract<RuleData, { kind: 'nullable' }>, path: Path | null): unknown {
    if (node.kind === 'scalar' && node.value === null) return null
    const { rule } = nullable
    return isScalarRule(rule) ? this.#scalar(node, rule, path, nullable) : this.value(node, rule, path)
  }

  #wrongKind(node: DocNode, rule: Rule, path: Path | null): undefined {
    const kind = node.kind === 'scalar' ? shownScalar(node.value) : `a ${node.kind}`
    this.#problems.add(node.offset, path, () => `is ${kind}; must be ${describeRule(rule)}`)
    return undefined
  }

  #list(node: DocNode, rule: Extract<RuleData, { kind: 'list' }>, path: Path | null): unknown {
    if (node.kind !== 'list') return this.#wrongKind(node, rule, path)
    const { length } = node.items
    if (length < rule.minItems || length > rule.maxItems) {
      return this.#problems.add(
        node.offset,
        path,
        `has ${length} items; allowed are ${rule.minItems} to ${rule.maxItems}`,
      )
    }
    return node.items.map((item, key) => this.value(item, rule.item, { parent: path, key }))
  }

  #pair(node: DocNode, rule: Extract<RuleData, { kind: 'pair' }>, path: Path | null): unknown {
    if (node.kind !== 'list') return this.#wrongKind(node, rule, path)
    const [first, second] = node.items
    if (node.items.length !== 2)
      return this.#problems.add(node.offset, path, `must be a list of two values, has ${node.items.length}`)
    return [
      this.value(first!, rule.first, { parent: path, key: 0 }),
      this.value(second!, rule.second, { parent: path, key: 1 }),
    ]
  }

  #integers(node: DocNode, rule: Extract<RuleData, { kind: 'integers' }>, path: Path | null): unknown {
    if (node.kind === 'list') {
      const item: Rule = { kind: 'integer', min: rule.min, max: rule.max }
      return this.#list(node, { kind: 'list', item, minItems: 1, maxItems: rule.maxCount }, path)
    }
    const range = node.kind === 'scalar' && typeof node.value === 'string' ? parseRange(node.value) : null
    if (range === null || range.from < rule.min || range.to > rule.max)
      return this.#wrongKind(node, rule, path)
    const count = rangeCount(range)
    if (count > rule.maxCount)
      return this.#problems.add(
        node.offset,
        path,
        `has ${count} values; allowed are at most ${rule.maxCount}`,
      )
    return rangeValues(range)
  }

  #dictionary(node: DocNode, rule: Extract<RuleData, { kind: 'dictionary' }>, path: Path | null): unknown {
    if (node.kind !== 'map') return this.#wrongKind(node, rule, path)
    const { size } = node.entries
    if (size < rule.minKeys || size > rule.maxKeys) {
      return this.#problems.add(
        node.offset,
        path,
        `has ${size} keys; allowed are ${rule.minKeys} to ${rule.maxKeys}`,
      )
    }
    const checked: Record<string, unknown> = {}
    for (const [key, { keyOffset, value }] of node.entries) {
      const keyPath = { parent: path, key }
      if (!rule.key.test(key)) this.#problems.add(keyOffset, keyPath, `the key must be ${rule.keyWhat}`)
      checked[key] = this.value(value, rule.value, keyPath)
    }
    return checked
  }

  #record(node: DocNode, rule: RecordData, path: Path | null): unknown {
    if (node.kind !== 'map') return this.#wrongKind(node, rule, path)
    const before = this.#problems.count
    const misspelt = this.#refuseUnknownKeys(node, rule, path)
    const checked: Record<string, unknown> = {}
    for (const [key, field] of Object.entries(rule.fields)) {
      const entry = node.entries.get(key)
      if (entry !== undefined) checked[key] = this.value(entry.value, field.rule, { parent: path, key })
      else if (field.presence === 'optional') {
        if (field.fallback !== undefined) checked[key] = field.fallback
      } else if (!misspelt.has(key)) {
        this.#problems.add(
          node.offset,
          { parent: path, key },
          () => `is missing; must be ${describeRule(field.rule)}`,
        )
      }
    }
    if (this.#problems.count === before) this.#spanningFields(checked, rule, path, node)
    return checked
  }

  #spanningFields(checked: Record<string, unknown>, rule: RecordData, path: Path | null, map: DocMap): void {
    const spanning = rule.check as RecordCheck<Record<string, unknown>> | null
    spanning?.(checked, (field, detail) => {
      const entry = field === null ? undefined : map.entries.get(field)
      this.#problems.add(
        entry?.value.offset ?? map.offset,
        field === null ? path : { parent: path, key: field },
        detail,
      )
    })
  }

  /** @returns the fields that were probably meant, so that they are not reported as missing */
  #refuseUnknownKeys(map: DocMap, rule: RecordData, path: Path | null): ReadonlySet<string> {
    const meant = new Set<string>()
    for (const [key, { keyOffset }] of map.entries) {
      if (Object.hasOwn(rule.fields, key)) continue
      this.#problems.add(keyOffset, { parent: path, key }, () => {
        const near = meantField(key, rule)
        if (near !== null) meant.add(near)
        const allowed = `allowed are ${Object.keys(rule.fields).join(', ')}`
        return near === null
          ? `is not a known key; ${allowed}`
          : `is not a known key; did you mean ${near}? (${allowed})`
      })
    }
    return meant
  }

  #byKey(node: DocNode, rule: Extract<RuleData, { kind: 'by_key' }>, path: Path | null): unknown {
    if (node.kind !== 'map') return this.#wrongKind(node, rule, path)
    const keys = Object.keys(rule.records)
    const present = keys.filter((key) => node.entries.has(key))
    if (present.length === 1) return this.value(node, rule.records[present[0]!]!, path)
    return this.#problems.add(node.offset, path, () =>
      present.length > 1
        ? `has both ${present[0]} and ${present[1]}; only one of them says what it is`
        : `needs one of the keys ${keys.join(', ')}${this.#instead(node, keys)}`,
    )
  }

  /** Suggests a correction if a key of the map is close to one of the expected keys. */
  #instead(map: DocMap, keys: readonly string[]): string {
    for (const written of map.entries.keys()) {
      const near = nearestName(written, keys)
      if (near !== null) return `; did you mean ${near} instead of ${written}?`
    }
    return ''
  }

  #byValue(node: DocNode, rule: Extract<RuleData, { kind: 'by_value' }>, path: Path | null): unknown {
    if (node.kind !== 'map') return this.#wrongKind(node, rule, path)
    const choices = Object.keys(rule.records)
    const keyPath = { parent: path, key: rule.key }
    const told = node.entries.get(rule.key)?.value
    if (told === undefined)
      return this.#problems.add(node.offset, keyPath, `is missing; must be one of ${choices.join(', ')}`)
    const value = this.value(told, { kind: 'choice', choices }, keyPath)
    return typeof value === 'string' ? this.value(node, rule.records[value]!, path) : undefined
  }

  #json(node: DocNode): unknown {
    if (node.kind === 'broken') return null
    if (node.kind === 'scalar') return node.value
    if (node.kind === 'list') return node.items.map((item) => this.#json(item))
    return Object.fromEntries([...node.entries].map(([key, entry]) => [key, this.#json(entry.value)]))
  }
}

function meantField(key: string, rule: RecordData): string | null {
  if (Object.hasOwn(rule.otherNames, key)) return rule.otherNames[key]!
  return nearestName(key, Object.keys(rule.fields))
}

const SCALAR_KINDS = {
  integer: 1,
  number: 1,
  text: 1,
  choice: 1,
  boolean: 1,
  duration: 1,
  size: 1,
  instant: 1,
} as const satisfies Record<ScalarData['kind'], 1>

function isScalarRule(rule: RuleData): rule is ScalarData {
  return Object.hasOwn(SCALAR_KINDS, rule.kind)
}
