/**
 * Vectors and public traces that are not part of this repository: `HEADROOM_SHARED`, else the folder `shared`
 * next to it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'vitest'

export const SHARED = process.env['HEADROOM_SHARED'] ?? join(import.meta.dirname, '../../../shared')

/**
 * In a `describe`: a file or folder of it by its path there. Null where it is not: then the suite is one
 * skipped test that says so.
 */
export function sharedOrSkip(path: string): string | null {
  const whole = join(SHARED, path)
  if (existsSync(whole)) return whole
  const reason = `${whole} is not there; HEADROOM_SHARED names the folder that holds vectors/ and data/`
  console.warn(`skipped: ${reason}`)
  it.skip(reason)
  return null
}
