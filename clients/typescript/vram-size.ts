/** VRAM on a command line: always with a unit, since a bare 8 could mean GiB or MiB. */
import type { Mib } from '../../protocol/units.ts'

export const VRAM_FORMAT = 'a size with a unit (8Gi, 8192Mi, 8G or 8000M)'

const BYTES_PER_UNIT = {
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  M: 10n ** 6n,
  G: 10n ** 9n,
  T: 10n ** 12n,
} as const
const BYTES_PER_MIB = 2n ** 20n

/**
 * `8Gi` → 8192; decimal units are rounded up to whole MiB, `8G` → 7630. Null: invalid. Whole numbers only.
 */
export function parseVram(text: string): Mib | null {
  const match = /^(\d{1,12})(Mi|Gi|Ti|M|G|T)$/.exec(text)
  if (match === null) return null
  const bytes = BigInt(match[1] ?? 0) * BYTES_PER_UNIT[match[2] as keyof typeof BYTES_PER_UNIT]
  return Number((bytes + BYTES_PER_MIB - 1n) / BYTES_PER_MIB)
}
