/** A standby rehearses its start in memory. */
import { expect, it, vi } from 'vitest'
import { rehearseStart } from '../../services/controller/rehearsal.ts'
import { WAIT } from '../support/wait.ts'

/** How many open resources of each kind the process has; the test runner opens and closes its own. */
function openResources(): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const kind of process.getActiveResourcesInfo())
    if (kind !== 'Immediate') counts.set(kind, (counts.get(kind) ?? 0) + 1)
  return counts
}

it('A rehearsed start leaves no timer and no connection behind', async () => {
  await rehearseStart()
  const before = openResources()
  await rehearseStart()
  await rehearseStart()
  await vi.waitFor(() => {
    const more = [...openResources()].filter(([kind, count]) => count > (before.get(kind) ?? 0))
    expect(more).toEqual([])
  }, WAIT)
})
