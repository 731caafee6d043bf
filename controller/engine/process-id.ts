import type { RandomStream } from '../ports/random.ts'

/** Returns an id for a controller process: 16 hexadecimal digits. */
export function processIdFrom(random: RandomStream): string {
  return digits(random) + digits(random)
}

function digits(random: RandomStream): string {
  return Math.floor(random() * 4_294_967_296)
    .toString(16)
    .padStart(8, '0')
}
