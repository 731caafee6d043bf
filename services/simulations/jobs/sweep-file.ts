/**
 * The result of a sweep as a downloadable file. Made on request, in its own process: for a large sweep it
 * takes a second.
 */
import type { SweepFileFormat } from '../../../controller/ports/simulation.ts'
import { JobProcess } from '../../workers/job-process.ts'
import { sweepHtml, sweepRunsCsv, type SweepReport } from '../../sweep/sweep-report.ts'
import { workerUrl } from '../../workers/worker-url.ts'

export interface SweepFileJob {
  readonly format: SweepFileFormat
  /** Name of the scenario. */
  readonly name: string
  /** `result.json` */
  readonly report: string
}

export function sweepFile({ format, name, report }: SweepFileJob): Promise<string> {
  const parsed = JSON.parse(report) as SweepReport
  return Promise.resolve(format === 'csv' ? sweepRunsCsv(parsed) : sweepHtml(name, parsed))
}

/** Waiting requests; each holds the result of a sweep. */
const MAX_WAITING = 8
const HEAP_MIB = 512

/** Makes one file at a time. */
export class SweepFiles {
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0

  /** Null: too many are waiting. */
  make(job: SweepFileJob): Promise<string> | null {
    if (this.#waiting >= MAX_WAITING) return null
    this.#waiting += 1
    const made = this.#last.then(() => madeElsewhere(job))
    this.#last = made.then(
      () => {},
      () => {},
    )
    return made.finally(() => {
      this.#waiting -= 1
    })
  }

  async close(): Promise<void> {
    await this.#last
  }
}

async function madeElsewhere(job: SweepFileJob): Promise<string> {
  const process = new JobProcess<SweepFileJob, string>(workerUrl('simulations/jobs/sweep-file-worker'), {
    heapMib: HEAP_MIB,
  })
  try {
    return await process.ask(job)
  } finally {
    await process.end()
  }
}
