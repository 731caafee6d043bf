import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Reads a file of test/vectors: cases whose expected values do not come from this program. */
export function readVectors<T>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '../vectors', name), 'utf8')) as T
}
