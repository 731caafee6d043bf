/** The `Random` port outside simulations: unpredictable numbers, the same source for every name. */
import { getRandomValues } from 'node:crypto'
import type { Random, RandomStream } from '../ports/random.ts'

/** Number of random numbers drawn from the system at once. */
const DRAWN_AT_ONCE = 256

export function createSystemRandom(): Random {
  const drawn = new Uint32Array(DRAWN_AT_ONCE)
  let next = DRAWN_AT_ONCE
  const stream: RandomStream = () => {
    if (next === DRAWN_AT_ONCE) {
      getRandomValues(drawn)
      next = 0
    }
    return (drawn[next++] as number) / 4_294_967_296
  }
  return { stream: () => stream }
}
