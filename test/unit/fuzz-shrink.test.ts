import { describe, expect, it } from 'vitest'
import { scenarioOf } from '../../simulator/experiment/fuzz/build.ts'
import type { Entry, FuzzDocument } from '../../simulator/experiment/fuzz/document.ts'
import { drawDocument } from '../../simulator/experiment/fuzz/draw.ts'
import { shrink } from '../../simulator/experiment/fuzz/shrink.ts'

/** A scenario with many items of every kind. */
const LARGE = drawDocument(11)

function taskIds({ workload }: FuzzDocument): string[] {
  return workload.map(({ task }) => String((task as Entry)['id']))
}

function isBuilt(document: FuzzDocument): boolean {
  try {
    scenarioOf(document)
    return true
  } catch {
    return false
  }
}

describe('a failing scenario', () => {
  it('shrinks to the part that makes it fail', async () => {
    const [wanted] = taskIds(LARGE).slice(-1)
    const fails = (document: FuzzDocument): Promise<boolean> =>
      Promise.resolve(isBuilt(document) && taskIds(document).includes(String(wanted)))
    const { document } = await shrink(LARGE, fails, 5_000)
    expect(taskIds(document)).toEqual([wanted])
    expect(document.faults).toEqual([])
    expect(document.operator).toEqual([])
    expect(document.fleet).toHaveLength(1)
    expect(document.config).toEqual({})
  })

  it('shrinks to the same result each time, within its limit of tries', async () => {
    const fails = (document: FuzzDocument): Promise<boolean> =>
      Promise.resolve(isBuilt(document) && document.workload.length >= 2)
    const [one, two] = [await shrink(LARGE, fails, 5_000), await shrink(LARGE, fails, 5_000)]
    expect(one).toEqual(two)
    expect(one.document.workload).toHaveLength(2)
    const few = await shrink(LARGE, fails, 3)
    expect(few.tries).toBe(3)
  })

  it('loses the items that name a removed node', async () => {
    const named: FuzzDocument = {
      ...LARGE,
      fleet: [
        { name: 'n0', gpu: { vram_mib: 1000 } },
        { name: 'n1', gpu: { vram_mib: 1000 } },
      ],
      operator: [{ at: '1ms', post: '/api/v1/nodes/{node:n1}/cordon' }],
      faults: [{ at: '1ms', partition: ['controller', ['n0', 'n1']], for: '10ms' }],
    }
    const fails = (document: FuzzDocument): Promise<boolean> =>
      Promise.resolve(isBuilt(document) && document.fleet[0]?.['name'] === 'n0')
    const { document } = await shrink(named, fails, 5_000)
    expect([document.fleet.length, document.operator, document.faults]).toEqual([1, [], []])
  })

  it('stays unchanged if nothing smaller fails', async () => {
    const { document } = await shrink(LARGE, () => Promise.resolve(false), 5_000)
    expect(document).toEqual(LARGE)
  })
})
