/** Answers that no reactive store looks into. Pure. */

/**
 * Not what a literal makes, so the store takes it as one value: it walks through everything else at each
 * change of a query, which costs more than to draw it.
 */
class Opaque {
  constructor(fields: object) {
    Object.assign(this, fields)
  }
}

const known = new WeakMap<object, unknown>()

/**
 * The same fields; for the same answer the same object, so that who shows it sees no change where there is
 * none. Lists and plain values stay as they are.
 */
export function opaque(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null || Object.getPrototypeOf(answer) !== Object.prototype)
    return answer
  const made = known.get(answer) ?? new Opaque(answer)
  known.set(answer, made)
  return made
}
