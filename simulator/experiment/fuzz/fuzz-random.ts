/** Random whole numbers and choices from a random stream. */
import type { RandomStream } from '../../../controller/ports/random.ts'

export class FuzzRandom {
  readonly #random: RandomStream

  constructor(random: RandomStream) {
    this.#random = random
  }

  /** 0 to n - 1. */
  below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  /** Both ends included. */
  between(least: number, most: number): number {
    return least + this.below(most - least + 1)
  }

  oneOf<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)]
    if (choice === undefined) throw new RangeError('a choice from nothing')
    return choice
  }

  /** True with this probability, in percent. */
  chance(percent: number): boolean {
    return this.below(100) < percent
  }

  /** Each member with this probability, in percent; in their order. */
  some<T>(members: readonly T[], percent: number): T[] {
    return members.filter(() => this.chance(percent))
  }
}
