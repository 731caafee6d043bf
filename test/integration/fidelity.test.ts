/**
 * A short scenario in virtual time and on real processes has equal decisions. Figures of a loaded machine
 * decide no test; `make fidelity` measures them.
 */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { startTimesOf } from '../fidelity/calibrate-start.ts'
import { compare } from '../fidelity/outcome.ts'
import { runReally } from '../fidelity/real-run.ts'
import { runVirtually } from '../fidelity/virtual-run.ts'
import { temporaryFolder, write } from '../support/headroom-command.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const SCENARIO = `scenario: fidelity-short
version: 1
fleet:
  - { count: 2, name: "server-{i}", gpu: { model: declared, vram_mib: 8192,
      swap: { out_mib_per_s: 8000, in_mib_per_s: 8000 } } }
config: { default_vram_overcommit_percent: 100, safety_reserve_mib: 0, idle_swap_out_seconds: 1 }
workload:
  - { task: { id: stays, at: 0s, vram_mib: 7000, noswap: 1, work: { kind: phases, phases: [[7s, 0s]] } } }
  - { task: { id: idles, at: 500ms, vram_mib: 5000, work: { kind: phases, phases: [[1s, 8s], [1s, 0s]] } } }
  - { task: { id: waits, at: 5s, vram_mib: 6000, work: { kind: phases, phases: [[2500ms, 0s]] } } }
`

const folder = temporaryFolder()

it.skipIf(whyNoNatsServer() !== null)(
  'Real and simulated processes lead to the same decisions',
  async () => {
    const file = write(folder, 'short.scenario.yaml', SCENARIO)
    const virtual = await runVirtually(file, join(folder, 'virtual'))
    const real = await runReally(loadScenario(file).scenario)
    const compared = compare('short', virtual, real)
    console.log(JSON.stringify(compared))
    expect(compared.closestMs).toBeGreaterThanOrEqual(250)
    expect(virtual.decisions.some((each) => each.startsWith('swap out for waits'))).toBe(true)
    expect(real.decisions).toEqual(virtual.decisions)
  },
  90_000,
)

it('A deviating figure and a different decision are reported', () => {
  const one = {
    decisions: ['place a'],
    decidedAtMs: [0, 300],
    queueWaitS: 2,
    starvationPercent: 0,
    utilizationPercent: 50,
    wakesS: [],
  }
  const other = { ...one, decisions: ['place b'], queueWaitS: 2.1 }
  const compared = compare('x', one, other)
  expect(compared.difference).toBe('decision 1: virtual place a, real place b')
  expect(compared.figures.map(({ differencePercent }) => Math.round(differencePercent))).toEqual([5, 0, 0])
  expect(compare('x', one, one).difference).toBeNull()
})

it('The duration of a start is the median of the measurements', () => {
  expect(startTimesOf([300, 40, 90])).toEqual({ ms: [40, 90, 300], medianMs: 90 })
})
