/**
 * `make bench-rest`: measures the REST API over real sockets and prints a table; exits with 1 when a floor is
 * missed.
 */
import { misses, rowsOf, tableOf } from '../table.ts'
import type { Reading } from '../targets.ts'
import { measureCrowded } from './crowded.ts'
import { measureRatios } from './ratios.ts'
import { measureStreams } from './streams.ts'
import { REST_TARGETS, type RestMeasure } from './rest-targets.ts'
import { measureSeries } from './series.ts'
import { measureSimulating } from './simulating.ts'

const MEASURES = {
  ratios: measureRatios,
  streams: measureStreams,
  crowded: measureCrowded,
  series: measureSeries,
  simulating: measureSimulating,
}

const wanted = process.argv.slice(2)
const readings: Reading<RestMeasure>[] = []
for (const [name, measure] of Object.entries(MEASURES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for (const reading of await measure()) {
    readings.push(reading)
    console.log(`${reading.name} ${reading.value}: ${reading.note}`)
  }
}
console.log(`\n${tableOf(readings, REST_TARGETS)}`)
process.exitCode = rowsOf(readings, REST_TARGETS).some(misses) ? 1 : 0
