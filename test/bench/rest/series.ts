/** The `series_…` measures, in a separate process: its memory is one of them. */
import { fork } from 'node:child_process'
import type { Reading } from '../targets.ts'
import type { RestMeasure } from './rest-targets.ts'

export function measureSeries(): Promise<readonly Reading<RestMeasure>[]> {
  const child = fork(new URL('./series-process.ts', import.meta.url), { execArgv: ['--expose-gc'] })
  return new Promise((resolve, reject) => {
    child.once('message', (readings) => resolve(readings as readonly Reading<RestMeasure>[]))
    child.once('exit', (code) => reject(new Error(`the bench of series ended with ${code}`)))
  })
}
