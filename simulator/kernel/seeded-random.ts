import seedrandom from 'seedrandom'
import type { Random, RandomStream } from '../../controller/ports/random.ts'

export type Seed = number | string

/**
 * The simulator's random numbers: one Alea generator for each name, seeded by `${seed}/${name}`. The same
 * name continues its stream. Streams exist as long as this object, so names must be few (one for each
 * purpose); for a stream per task use `seededStream`, which stores nothing.
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
 * Returns a new stream: the same numbers as the first of `createSeededRandom(seed).stream(name)`. 32 random
 * bits per call.
 */
export function seededStream(seed: Seed, name: string): RandomStream {
  return seedrandom.alea(`${seed}/${name}`)
}
