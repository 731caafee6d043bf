/** Responses as values that reactive stores do not traverse. Pure. */

/**
 * Not a plain object, so that the store treats it as one value: traversing it on each change of a query costs
 * more than drawing it.
 */
class Opaque {
  constructor(fields: object) {
    Object.assign(this, fields)
  }
}

const known = new WeakMap<object, unknown>()

/**
 * Returns an object with the same fields, and for the same response the same object, so that unchanged data
 * causes no update. Lists and primitive values stay as they are.
 */
export function opaque(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Object.getPrototypeOf(answer) !== Object.prototype)
    return answer
  const made = known.get(answer) ?? new Opaque(answer)
  known.set(answer, made)
  return made
}
