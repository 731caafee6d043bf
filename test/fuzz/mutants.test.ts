/**
 * One or two mutants of every policy rule, with the seed that last detected them: it must still detect them.
 * `make mutants` hunts all of them.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hunt } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'

const OF_EACH_RULE = 2
const OF_POLICY = ['admission', 'queue', 'swap', 'return', 'stop']
const caught = JSON.parse(
  readFileSync(join(import.meta.dirname, '../mutants/caught.json'), 'utf8'),
) as Record<string, number>

const chosen = OF_POLICY.flatMap((rule) =>
  MUTANTS.filter((mutant) => mutant.rule === rule && caught[mutant.name] !== undefined).slice(
    0,
    OF_EACH_RULE,
  ),
)

describe('a removed policy rule', () => {
  it.each(chosen)('$rule $name is detected', { timeout: 120_000 }, async (mutant) => {
    const found = await hunt(mutant, { maxSeeds: 0, maxMs: 60_000, knownSeed: caught[mutant.name] ?? null })
    expect(found.by, mutant.says).toEqual({ seed: caught[mutant.name] })
  })
})
