/** Reads scenarios in its own process, with a time limit: no text can stop the controller. */
import type { DurationMs } from '../../../protocol/units.ts'
import { JobProcess } from '../../workers/job-process.ts'
import { WorkerFault } from '../../workers/worker-process.ts'
import { workerUrl } from '../../workers/worker-url.ts'
import { LIMITS } from './limits.ts'
import type { ReadAnswer, ReadJob } from './read-job.ts'

/** Maximum number of waiting texts. */
const MAX_WAITING = 16
const HEAP_MIB = 512
/** The library has many files, each of which was checked before it was stored. */
const LIBRARY_CPU_MS: DurationMs = 20_000
/** Between two looks at its CPU time, at least. */
const LOOK_MS: DurationMs = 50

export class ScenarioReader {
  #process: JobProcess<ReadJob, ReadAnswer> | null = null
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #isClosed = false

  /**
   * Reads one text at a time. Null: too many are waiting. Rejects with WorkerFault when it takes too much
   * time or memory.
   */
  read(job: ReadJob): Promise<ReadAnswer> | null {
    if (this.#waiting >= MAX_WAITING || this.#isClosed) return null
    this.#waiting += 1
    const answer = this.#last.then(() => this.#readNow(job))
    this.#last = answer.then(
      () => {},
      () => {},
    )
    return answer.finally(() => {
      this.#waiting -= 1
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#process?.end()
  }

  async #readNow(job: ReadJob): Promise<ReadAnswer> {
    const process = await this.#warm()
    const limit = timeLimit(process, job.kind === 'library' ? LIBRARY_CPU_MS : LIMITS.readCpuMs)
    try {
      return await Promise.race([process.ask(job), limit.exceeded])
    } catch (error) {
      if (error instanceof WorkerFault) void process.end()
      throw error
    } finally {
      limit.end()
    }
  }

  /** The start of a process does not count towards the time limit. */
  async #warm(): Promise<JobProcess<ReadJob, ReadAnswer>> {
    if (this.#process !== null && !this.#process.isEnded) return this.#process
    const process = new JobProcess<ReadJob, ReadAnswer>(workerUrl('simulations/library/reader-worker'), {
      heapMib: HEAP_MIB,
    })
    this.#process = process
    await process.ask({ kind: 'library', files: [] })
    return process
  }
}

interface TimeLimit {
  /** Rejects with WorkerFault. */
  readonly exceeded: Promise<never>
  end(): void
}

function timeLimit(process: JobProcess<ReadJob, ReadAnswer>, maxCpuMs: DurationMs): TimeLimit {
  const { promise, reject } = Promise.withResolvers<never>()
  const startedAt = performance.now()
  const cpuMsBefore = process.cpuMs
  const look = (): void => {
    const leftCpuMs = maxCpuMs - (process.cpuMs - cpuMsBefore)
    const leftMs = LIMITS.readWithinMs - (performance.now() - startedAt)
    if (leftCpuMs <= 0) reject(new WorkerFault(`it took more than ${maxCpuMs / 1000} s of CPU time to read`))
    else if (leftMs <= 0) reject(new WorkerFault(`it took more than ${LIMITS.readWithinMs / 1000} s to read`))
    else timer = setTimeout(look, Math.max(LOOK_MS, Math.min(leftCpuMs, leftMs)))
  }
  let timer = setTimeout(look, maxCpuMs)
  return { exceeded: promise, end: () => clearTimeout(timer) }
}
