import seedrandom from 'seedrandom'
import type { Random, RandomStream } from '../../controller/ports/random.ts'

export type Seed = number | string

/**
 * The simulator's randomness: one Alea generator for each name, seeded by `${seed}/${name}`. Asking for a
 * name again continues its stream. Streams live as long as this object, so names must be few (one for each
 * purpose); where each task has a stream of its own, use `seededStream`, which keeps nothing.
 */
export function createSeededRandom(seed: Seed): Random {
  const streams = new Map<string, RandomStream>()
  return {
    stream(name) {
      let stream = streams.get(name)
      if (stream === undefined) {
        stream = seededStream(seed, name)
        streams.set(name, stream)
      }
      return stream
    },
  }
}

/**
 * A fresh stream from its first number: the same numbers as `createSeededRandom(seed).stream(name)` gives
 * first. 32 random bits a call.
 */
export function seededStream(seed: Seed, name: string): RandomStream {
  return seedrandom.alea(`${seed}/${name}`)
}
