import { describe, expect, it } from 'vitest'
import { simServe } from '../../cli/sim-serve.ts'

describe('sim serve', () => {
  it('refuses a scenario with faults, by the name of the field, instead of leaving them out silently', async () => {
    const served = simServe('scenarios/faults/fault-swarm.scenario.yaml', { speed: 1, faults: true })
    await expect(served).rejects.toThrow(/^scenarios\/faults\/fault-swarm\.scenario\.yaml: faults: .*--no-faults/)
  })
})
