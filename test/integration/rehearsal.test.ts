/** A standby rehearses its start in memory. */
import { expect, it } from 'vitest'
import { rehearseStart } from '../../services/controller/rehearsal.ts'

it('A rehearsed start leaves no timer and no connection behind', async () => {
  const held = (): ReadonlyMap<string, number> => {
    const counts = new Map<string, number>()
    for (const kind of process.getActiveResourcesInfo())
      if (kind !== 'Immediate') counts.set(kind, (counts.get(kind) ?? 0) + 1)
    return counts
  }
  await rehearseStart()
  const before = held()
  await rehearseStart()
  expect(held()).toEqual(before)
})
