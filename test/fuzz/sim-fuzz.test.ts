/**
 * Scenarios drawn from seeds, with faults, under every rule; each usual path of the rules must be taken.
 * HEADROOM_FUZZ_SEEDS=10000 draws 10,000 scenarios and also requires the rare paths. The first seed differs
 * from run to run and is printed; HEADROOM_FUZZ_FROM repeats a run.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fuzzStart } from '../support/fuzz-start.ts'
import { headroom, headroomJson } from '../support/headroom-command.ts'

const SEEDS = Number(process.env['HEADROOM_FUZZ_SEEDS'] ?? 2_000)
const FROM = fuzzStart(process.env)
/** Outlives the run: a failing seed is kept as the smallest scenario that fails in the same way. */
const KEPT = join(import.meta.dirname, '../../fuzz-failures')

interface Fuzzed {
  readonly digest: string
  readonly failures: readonly { readonly seed: number }[]
  readonly missing: readonly string[]
  readonly counts: Readonly<Record<string, number>>
}

describe('headroom sim fuzz', () => {
  it(
    'finds no seed that breaks a rule, and takes every usual path',
    { timeout: 60_000 + 200 * SEEDS },
    async () => {
      const repeat =
        `HEADROOM_FUZZ_SEEDS=${SEEDS} HEADROOM_FUZZ_FROM=${FROM} make test ` +
        'ARGS=test/fuzz/sim-fuzz.test.ts'
      console.log(`${SEEDS} fuzz seeds from ${FROM}; repeat: ${repeat}`)
      const args = [
        'sim',
        'fuzz',
        '--seeds',
        String(SEEDS),
        '--from',
        String(FROM),
        '--jobs',
        '2',
        '--coverage',
        '--out',
        KEPT,
        '--json',
      ]
      const { failures, missing } = await headroomJson<Fuzzed>(args)
      const commands = failures.map(({ seed }) => `headroom sim fuzz --seeds 1 --from ${seed}`)
      expect(
        failures,
        `seeds failed; the first one, made smaller, is in ${KEPT}\n${commands.join('\n')}\n`,
      ).toEqual([])
      expect(missing, `no seed took these paths; repeat: ${repeat}`).toEqual([])
    },
  )

  it('has the same digest with two threads as with one', { timeout: 120_000 }, async () => {
    const [one, two] = await Promise.all(
      ['1', '2'].map((jobs) =>
        headroomJson<Fuzzed>(['sim', 'fuzz', '--seeds', '60', '--from', '100', '--jobs', jobs, '--json']),
      ),
    )
    expect(two).toEqual(one)
  })

  it(
    'judges a file instead, and returns by exit code whether every rule holds',
    { timeout: 120_000 },
    async () => {
      const held = await headroom([
        'sim',
        'fuzz',
        join(import.meta.dirname, '../mutants/scenarios/fits-now-first.scenario.yaml'),
      ])
      expect([held.code, held.stdout]).toEqual([
        0,
        expect.stringMatching(/^ok: every rule holds \(digest [0-9a-f]{64}\)\n$/),
      ])
      const broken = await headroom([
        'sim',
        'fuzz',
        join(import.meta.dirname, '../fixtures/broken.scenario.yaml'),
      ])
      expect([broken.code, broken.stdout]).toEqual([
        1,
        expect.stringMatching(/^queue_wait_s\.p99 at .*the maximum is 1\n$/),
      ])
      expect(readFileSync(join(import.meta.dirname, '../fixtures/broken.scenario.yaml'), 'utf8')).toContain(
        'max: 1',
      )
    },
  )
})
