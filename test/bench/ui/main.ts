/**
 * `make bench-ui`: measures the page in Chromium with a real controller and prints a table; exits with 1 when
 * a floor is missed, 2 on invalid arguments.
 */
import { misses, rowsOf, tableOf } from '../table.ts'
import type { Reading } from '../targets.ts'
import { CHROMIUM } from '../../support/browser.ts'
import { measureCrowdedPage } from './crowded-page.ts'
import { measureGantt } from './gantt.ts'
import { measureHeap } from './heap.ts'
import { UI_TARGETS, type UiMeasure } from './ui-targets.ts'

const MEASURES = { crowded: measureCrowdedPage, gantt: measureGantt, heap: measureHeap }

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !Object.hasOwn(MEASURES, name))
if (unknown.length > 0 || CHROMIUM === null) {
  console.error(
    CHROMIUM === null
      ? 'there is no chromium'
      : `unknown bench: ${unknown.join(', ')}. Available: ${Object.keys(MEASURES).join(', ')}`,
  )
  process.exit(2)
}
const readings: Reading<UiMeasure>[] = []
for (const [name, measure] of Object.entries(MEASURES)) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  for (const reading of await measure()) {
    readings.push(reading)
    console.log(`${reading.name} ${reading.value}: ${reading.note}`)
  }
}
console.log(`\n${tableOf(readings, UI_TARGETS)}`)
process.exitCode = rowsOf(readings, UI_TARGETS).some(misses) ? 1 : 0
