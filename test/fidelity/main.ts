/**
 * `make fidelity`: each scenario in virtual time and in real time over a broker with process servers; prints
 * a table of the differences. The duration of a start is measured here before each comparison, and is
 * `start_ms` of the virtual run. Exits with 1 when decisions differ or a figure differs by more than 2 %.
 * `node test/fidelity/main.ts [FILE …]` runs only some.
 */
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { calibrateStart, type StartTimes } from './calibrate-start.ts'
import { compare, type Compared } from './outcome.ts'
import { runReally } from './real-run.ts'
import { runVirtually } from './virtual-run.ts'

const WITHIN_PERCENT = 2

const files = process.argv.slice(2)
const all =
  files.length > 0
    ? files
    : globSync(join(import.meta.dirname, '*.scenario.yaml')).toSorted((a, b) => (a < b ? -1 : 1))
const folder = mkdtempSync(join(tmpdir(), 'headroom-fidelity-'))
const compared: Compared[] = []
for (const file of all) {
  const { scenario } = loadScenario(file)
  const start = await calibrateStart()
  const virtual = await runVirtually(file, join(folder, scenario.name), start.medianMs)
  const real = await runReally(scenario)
  const one = compare(scenario.name, virtual, real)
  compared.push(one)
  console.log(lineOf(one, start))
  // prettier-ignore
  console.log(`  load of the machine: ${loadavg().map((load) => load.toFixed(1)).join(' ')}`)
}
rmSync(folder, { recursive: true })
process.exitCode = compared.every(holds) ? 0 : 1

function holds({ difference, figures }: Compared): boolean {
  return (
    difference === null &&
    figures.every(({ differencePercent }) => Math.abs(differencePercent) <= WITHIN_PERCENT)
  )
}

function lineOf(one: Compared, { ms, medianMs }: StartTimes): string {
  const decisions =
    one.difference === null ? `all ${one.decisions} decisions equal` : `DIFFERENT ${one.difference}`
  const figures = one.figures.map(({ name, virtual, real, differencePercent }) => {
    const sign = differencePercent > 0 ? '+' : ''
    return (
      `  ${name.padEnd(20)} virtual ${virtual.toFixed(3).padStart(8)}  real ` +
      `${real.toFixed(3).padStart(8)}  ${sign}${differencePercent.toFixed(2)} %`
    )
  })
  const starts = `  a start takes ${medianMs} ms here: the median of ${ms.join(' ')}`
  return [`${one.scenario}: ${decisions}, at least ${one.closestMs} ms apart`, starts, ...figures].join('\n')
}
