/**
 * One mutant of every policy rule, with the seed that last detected it: it must still detect it.
 * `make mutants` hunts all of them.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hunt } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'

const OF_POLICY = ['admission', 'queue', 'swap', 'return', 'stop']
const caught = JSON.parse(
  readFileSync(join(import.meta.dirname, '../mutants/caught.json'), 'utf8'),
) as Record<string, number>

const chosen = OF_POLICY.flatMap((rule) =>
  MUTANTS.filter((mutant) => mutant.rule === rule && caught[mutant.name] !== undefined).slice(0, 1),
)

describe('a removed policy rule', () => {
  it.each(chosen)('$rule $name is detected', { timeout: 120_000 }, async (mutant) => {
    const found = await hunt(mutant, { maxSeeds: 0, maxMs: 60_000, knownSeed: caught[mutant.name] ?? null })
    expect(found.by, mutant.says).toEqual({ seed: caught[mutant.name] })
  })
})
