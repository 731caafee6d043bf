import { describe, expect, it } from 'vitest'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { FAULT_KINDS } from '../../simulator/scenario/fault.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { stringify } from 'yaml'

const SEEDS = Array.from({ length: 200 }, (_, index) => index + 1)

describe('a drawn scenario', () => {
  it('is the same for the same seed, and different for different seeds', () => {
    expect(drawDocument(7)).toEqual(drawDocument(7))
    expect(drawDocument(7)).not.toEqual(drawDocument(8))
  })

  it('can be written to a file, and the file is equal to the scenario', () => {
    for (const seed of SEEDS) {
      const document = drawDocument(seed)
      expect(loadScenario({ text: stringify(document), baseDir: '.' }).scenario, `seed ${seed}`).toEqual(
        scenarioOf(document),
      )
    }
  })

  it('leaves out most kinds of faults, and every kind occurs in some scenario', () => {
    const drawn = new Set<string>(
      SEEDS.flatMap((seed) => scenarioOf(drawDocument(seed)).faults.map(({ kind }) => kind)),
    )
    expect([...drawn].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(
      [...FAULT_KINDS].toSorted((a, b) => (a < b ? -1 : 1)),
    )
    const calm = SEEDS.filter((seed) => scenarioOf(drawDocument(seed)).faults.length === 0)
    expect(calm.length).toBeGreaterThan(SEEDS.length / 4)
    expect(calm.length).toBeLessThan((3 * SEEDS.length) / 4)
  })

  it('ends every fault before its clock ends', () => {
    for (const seed of SEEDS) {
      const { faults, clock } = scenarioOf(drawDocument(seed))
      for (const fault of faults) {
        if (fault.kind === 'swarm') continue
        expect(fault.atMs + (fault.forMs ?? 0), `seed ${seed}, ${fault.kind}`).toBeLessThanOrEqual(
          clock.untilMs ?? Infinity,
        )
      }
    }
  })
})
