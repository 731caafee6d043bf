/** The folder of the demonstration that the tests of one run share (demonstration.ts fills it). */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export default function setUp(): (() => void) | undefined {
  // Another project of this run has made it.
  if (process.env['HEADROOM_TEST_DEMONSTRATION'] !== undefined) return undefined
  const place = mkdtempSync(join(tmpdir(), 'headroom-demonstration-'))
  process.env['HEADROOM_TEST_DEMONSTRATION'] = place
  return () => rmSync(place, { recursive: true, force: true })
}
