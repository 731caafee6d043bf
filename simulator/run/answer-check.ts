/** Checks whether an answer contains what a scenario expects. */

/**
 * Describes where `answer` does not contain `expected`; null: it does. Maps must have the keys of `expected`,
 * lists match item by item, other values are equal.
 */
export function missingIn(answer: unknown, expected: unknown, path = ''): string | null {
  const place = path === '' ? 'the answer' : path
  if (typeof expected !== 'object' || expected === null) {
    return answer === expected ? null : `${place} is ${shown(answer)}, expected is ${shown(expected)}`
  }
  if (Array.isArray(expected)) {
    if (!Array.isArray(answer)) return `${place} is ${shown(answer)}, expected is a list`
    if (answer.length !== expected.length)
      return `${place} has ${answer.length} items, expected are ${expected.length}`
    return firstOf(expected.map((item, i) => missingIn(answer[i], item, `${path}[${i}]`)))
  }
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer))
    return `${place} is ${shown(answer)}, expected is a map`
  const members = answer as Readonly<Record<string, unknown>>
  return firstOf(
    Object.entries(expected).map(([key, member]) =>
      missingIn(members[key], member, path === '' ? key : `${path}.${key}`),
    ),
  )
}

function firstOf(found: readonly (string | null)[]): string | null {
  return found.find((each) => each !== null) ?? null
}

const SHOWN_CHARACTERS = 100

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? 'not there'
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
}
