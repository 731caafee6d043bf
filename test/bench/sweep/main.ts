/**
 * `make bench-sweep`: the gain of a sweep from two cores, the duration of the openb plan, and the speed of a
 * simulated day; exits with 1 when a floor is missed.
 */
import { misses, rowsOf, tableOf } from '../table.ts'
import type { Reading } from '../targets.ts'
import { measureDay } from './day.ts'
import { measureOpenbSweep } from './openb.ts'
import { measureSpeedup } from './speedup.ts'
import { SWEEP_TARGETS, type SweepMeasure } from './sweep-targets.ts'

const MEASURES = { day: measureDay, openb: measureOpenbSweep, speedup: measureSpeedup }

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(MEASURES, name))
if (unknown.length > 0) {
  console.error(`unknown bench: ${unknown.join(', ')}. Available: ${Object.keys(MEASURES).join(', ')}`)
  process.exit(2)
}
const readings: Reading<SweepMeasure>[] = []
for (const [name, measure] of Object.entries(MEASURES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for (const reading of await measure()) {
    readings.push(reading)
    console.log(`${reading.name} ${reading.value}: ${reading.note}`)
  }
}
console.log(`\n${tableOf(readings, SWEEP_TARGETS)}`)
process.exitCode = rowsOf(readings, SWEEP_TARGETS).some(misses) ? 1 : 0
