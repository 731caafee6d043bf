/**
 * Scenarios drawn from seeds, with faults, under every rule; and that each usual path of the rules was taken.
 * HEADROOM_FUZZ_SEEDS=10000 draws so many, and asks for the rare paths too.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { headroom, headroomJson, temporaryFolder } from '../support/headroom-command.ts'

const SEEDS = Number(process.env['HEADROOM_FUZZ_SEEDS'] ?? 2_000)
const folder = temporaryFolder()

interface Fuzzed {
  readonly digest: string
  readonly failures: readonly unknown[]
  readonly missing: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

describe('headroom sim fuzz', () => {
  it('finds no seed that breaks a rule, and takes every usual path', { timeout: 60_000 + 200 * SEEDS }, async () => {
    const args = ['sim', 'fuzz', '--seeds', String(SEEDS), '--jobs', '2', '--coverage', '--out', folder, '--json']
    const { failures, missing } = await headroomJson<Fuzzed>(args)
    expect(failures).toEqual([])
    expect(missing).toEqual([])
  })

  it('comes to the same digest with one thread as with two', { timeout: 120_000 }, async () => {
    const [one, two] = await Promise.all(
      ['1', '2'].map((jobs) => headroomJson<Fuzzed>(['sim', 'fuzz', '--seeds', '60', '--from', '100', '--jobs', jobs, '--json'])),
    )
    expect(two).toEqual(one)
  })

  it('judges a file instead, and says by exit code whether every rule holds', { timeout: 120_000 }, async () => {
    const held = await headroom(['sim', 'fuzz', join(import.meta.dirname, '../mutants/scenarios/fits-now-first.scenario.yaml')])
    expect([held.code, held.stdout]).toEqual([0, expect.stringMatching(/^ok: every rule holds \(digest [0-9a-f]{64}\)\n$/)])
    const broken = await headroom(['sim', 'fuzz', join(import.meta.dirname, '../fixtures/broken.scenario.yaml')])
    expect([broken.code, broken.stdout]).toEqual([1, expect.stringMatching(/^queue_wait_s\.p99 at .*the most allowed is 1\n$/)])
    expect(readFileSync(join(import.meta.dirname, '../fixtures/broken.scenario.yaml'), 'utf8')).toContain('max: 1')
  })
})
