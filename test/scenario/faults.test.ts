/** The library has a scenario for every kind of fault, and in it every kind does something. */
import { globSync } from 'node:fs'
import { expect, it } from 'vitest'
import { runCheckTask } from '../../cli/check-run.ts'
import { FAULT_KINDS } from '../../simulator/scenario/fault.ts'

it('every kind of fault fires in a scenario of its own', { timeout: 120_000 }, async () => {
  const fired = new Map<string, number>()
  for (const file of globSync('scenarios/faults/*.scenario.yaml').sort((a, b) => (a < b ? -1 : 1))) {
    if (file.includes('swarm')) continue
    const { result } = await runCheckTask({ file }, () => {})
    for (const [kind, count] of Object.entries(result?.faults ?? {})) {
      expect(count.fired, `${kind} in ${file}`).toBeGreaterThan(0)
      fired.set(kind, (fired.get(kind) ?? 0) + count.fired)
    }
  }
  expect(FAULT_KINDS.filter((kind) => !fired.has(kind))).toEqual([])
})
