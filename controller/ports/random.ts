/** One stream of pseudo-random numbers: each call returns the next number in [0, 1). */
export type RandomStream = () => number

/**
 * Randomness by purpose. Every consumer names its own stream, so that a new consumer never shifts the numbers
 * of another. The same seed and name give the same numbers on every machine.
 */
export interface Random {
  stream(name: string): RandomStream
}
