/**
 * The second part of `make fidelity`: a twin that has seen 36 swaps of a slow device, against that device.
 * Prints the error of queue wait and of the wakes with the stock profile and with the learned speeds. Exits
 * with 1 if the latter exceed 2% and 10%.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadScenario } from '../../../simulator/scenario/load.ts'
import { SWAP_PROFILES } from '../../../simulator/scenario/swap-profiles.ts'
import { nearestRank } from '../../../simulator/kernel/quantile.ts'
import { calibrateStart } from '../calibrate-start.ts'
import type { Outcome } from '../outcome.ts'
import { runReally } from '../real-run.ts'
import { runVirtually } from '../virtual-run.ts'
import { learn, type Learned } from './learn.ts'

const WITHIN_PERCENT = { queueWait: 2, wakeP95: 10 }

const file = join(import.meta.dirname, 'slow-copies.scenario.yaml')
const { scenario } = loadScenario(file)
const [node] = scenario.nodes
if (node === undefined) throw new Error('the scenario has no node')
const folder = mkdtempSync(join(tmpdir(), 'headroom-fidelity-'))
const learned = await learn(node)
console.log(`learned from a device of ${JSON.stringify(node.gpu.swap)}:\n  ${JSON.stringify(learned)}`)
const start = await calibrateStart()
const stock = SWAP_PROFILES['stock-driver']
const before = await runVirtually(file, join(folder, 'before'), start.medianMs, stock)
const after = await runVirtually(file, join(folder, 'after'), start.medianMs, profileOf(learned))
const real = await runReally(scenario)
const errors = {
  before: errorsOf(before, real),
  after: errorsOf(after, real),
}
console.log(`real: queue wait ${real.queueWaitS.toFixed(3)} s, wakes ${real.wakesS.join(' ')} s`)
for (const [name, { queueWait, wakeP95 }] of Object.entries(errors))
  console.log(`${name}: queue wait ${signed(queueWait)}, p95 of the wakes ${signed(wakeP95)}`)
console.log(
  `load of the machine: ${loadavg()
    .map((load) => load.toFixed(1))
    .join(' ')}`,
)
rmSync(folder, { recursive: true })
const holds =
  Math.abs(errors.after.queueWait) <= WITHIN_PERCENT.queueWait &&
  Math.abs(errors.after.wakeP95) <= WITHIN_PERCENT.wakeP95
process.exitCode = holds ? 0 : 1

function errorsOf(virtual: Outcome, truth: Outcome) {
  const percent = (of: number, to: number): number => 100 * (of / to - 1)
  return {
    queueWait: percent(virtual.queueWaitS, truth.queueWaitS),
    wakeP95: percent(nearestRank(virtual.wakesS, 95), nearestRank(truth.wakesS, 95)),
  }
}

function profileOf({ out, in: back }: Learned) {
  return {
    outFixedMs: out.fixed_ms,
    outMibPerS: out.mib_per_s,
    inFixedMs: back.fixed_ms,
    inMibPerS: back.mib_per_s,
  }
}

function signed(percent: number): string {
  return `${percent > 0 ? '+' : ''}${percent.toFixed(2)}%`
}
