/** Label selectors as in a query: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`. */
import { KubeError } from '../ports/kube-api.ts'

type Labels = Readonly<Record<string, string>>
type Requirement = (labels: Labels) => boolean

export function matchesSelector(selector: string | undefined, labels: Labels = {}): boolean {
  if (selector === undefined || selector.trim() === '') return true
  return requirementsOf(selector).every((matches) => matches(labels))
}

function requirementsOf(selector: string): readonly Requirement[] {
  // A comma within parentheses separates values.
  return selector.split(/,(?![^(]*\))/).map((text) => requirementOf(text.trim()))
}

function requirementOf(text: string): Requirement {
  const set = /^(\S+) +(in|notin) *\(([^)]*)\)$/.exec(text)
  if (set !== null) {
    const [, name = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    return (labels) => {
      const value = labels[name]
      return operator === 'in' ? value !== undefined && values.includes(value) : !isIn(value, values)
    }
  }
  const [, name = '', operator, value = ''] = /^([^=!\s]+) *(==?|!=) *(\S*)$/.exec(text) ?? []
  if (operator !== undefined)
    return (labels) => (operator === '!=' ? labels[name] !== value : labels[name] === value)
  const [, not, key] = /^(!?) *([^=!\s]+)$/.exec(text) ?? []
  if (key === undefined) throw new KubeError(400, 'BadRequest', `unable to parse requirement: ${text}`)
  return (labels) => (labels[key] !== undefined) === (not === '')
}

function isIn(value: string | undefined, values: readonly string[]): boolean {
  return value !== undefined && values.includes(value)
}
