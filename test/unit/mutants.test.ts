/** Mutants must not rot: what each takes out stands in the sources as they are, exactly once. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { scenarioFile } from '../mutants/hunt.ts'
import { MUTANTS } from '../mutants/mutants.ts'

const ROOT = join(import.meta.dirname, '../..')

describe('mutants', () => {
  it('have names of their own', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length)
  })

  it('take out what stands in the sources exactly once, and put something else there', () => {
    for (const { name, edits } of MUTANTS) {
      for (const { file, find, put } of edits) {
        expect(readFileSync(join(ROOT, file), 'utf8').split(find), `${name}: ${find}`).toHaveLength(2)
        expect(put, name).not.toBe(find)
      }
    }
  })

  it('have a directed scenario or test that is there, where they name one', () => {
    for (const { name, directed } of MUTANTS) {
      if (directed === undefined) continue
      const file = 'test' in directed ? join(ROOT, directed.test) : scenarioFile(directed.scenario)
      expect(existsSync(file), `${name}: ${file}`).toBe(true)
    }
  })

  it.each(['R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9', 'R10', 'R11', 'R12', 'admission', 'queue', 'swap', 'return', 'stop'])(
    'there is one of %s at least',
    (rule) => {
      expect(MUTANTS.some((mutant) => mutant.rule === rule)).toBe(true)
    },
  )
})
