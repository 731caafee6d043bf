/**
 * The twin of `headroom serve`: copies the live state and continues it in its own process, one request at a
 * time.
 */
import type { EventSource } from '../../controller/engine/durable-events.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import type { Placement } from '../../controller/model/placement.ts'
import type { Views } from '../../controller/query/views.ts'
import type {
  ChangeForecast,
  ClusterSnapshot,
  DriftReport,
  NoForecast,
  SettingsChange,
  StartForecast,
  Twin,
} from '../../controller/ports/twin.ts'
import { snapshotText } from '../../simulator/snapshot/snapshot-text.ts'
import { withheldBecause } from '../../simulator/twin/drift.ts'
import { snapshotOfLive } from '../../simulator/twin/live-snapshot.ts'
import { ObservedSpeeds } from '../../simulator/calibration/observed-speeds.ts'
import { JobProcess } from '../workers/job-process.ts'
import { workerUrl } from '../workers/worker-url.ts'
import { DriftMonitor } from './drift-monitor.ts'
import { LatestStarts } from './latest-starts.ts'
import { RecentPastReader } from './recent-past.ts'
import type { TwinAnswer, TwinJob } from './twin-job.ts'
import { errorText } from '../../protocol/error-text.ts'

const HEAP_MIB = 1_024
/** Interval of checks for the end of an interval. */
const TICK_MS = 2_000
const HORIZON_MS = 4 * 3_600_000
const STARTS_TIMEOUT_MS = 2_000
const CHANGE_TIMEOUT_MS = 2_000
const MAX_START_RUNS = 40
const MAX_CHANGE_PAIRS = 20
/** Requests that wait for the process; further ones are refused. */
const MAX_WAITING = 4
/** Larger clusters are not copied: the copy alone would delay the controller. */
const MAX_OPEN_TASKS = 20_000

export interface LiveTwin extends Twin {
  close(): Promise<void>
}

export interface TwinOptions {
  readonly views: Views
  readonly events: EventSource
  readonly log: (line: string) => void
}

export function createTwin({ views, events, log }: TwinOptions): LiveTwin {
  const speeds = new ObservedSpeeds()
  const past = new RecentPastReader(views, () => speeds.all())
  const process = new TwinProcess(log)
  const ask = async (
    job: (image: ClusterSnapshot) => Omit<TwinJob, 'past'>,
    tried?: TaskRequest,
  ): Promise<TwinAnswer> => {
    const { pending, running, assigned, unreachable } = views.counts()
    if (pending + running + assigned + unreachable > MAX_OPEN_TASKS) return TOO_MANY
    const recent = await past.read()
    const asked = job(views.snapshot(tried))
    await yieldToOthers()
    return process.ask({ ...asked, past: recent } as TwinJob)
  }
  const drift = new DriftMonitor({
    views,
    forecast: () => ask((image) => ({ kind: 'forecast', image, ...DRIFT_BOUNDS })),
  })
  const unsubscribe = events.subscribe((list) => {
    drift.record(list)
    for (const event of list) speeds.see(event, placementOf(views, event.taskId))
  })
  const timer = setInterval(() => {
    void drift.tick().catch((fault: unknown) => log(`the twin failed: ${String(fault)}`))
  }, TICK_MS).unref()
  const starts = new LatestStarts(views, () => {
    return ask((image) => ({ kind: 'starts', image, ...START_BOUNDS })) as Promise<StartForecast | NoForecast>
  })
  return {
    async snapshot() {
      const recent = await past.read()
      // One copy of one instant; its snapshot is produced piece by piece.
      const image = views.snapshot()
      await yieldToOthers()
      const { snapshot, description } = snapshotOfLive(image, recent)
      return snapshotText(snapshot, { name: 'snapshot', description })
    },
    starts: async (isAnew = false) => withheldBecause(drift.report()) ?? starts.get(isAnew),
    latestStarts: () => withheldBecause(drift.report()) ?? starts.latest(),
    async tryTask(request: TaskRequest) {
      const withheld = withheldBecause(drift.report())
      if (withheld !== null) return withheld
      return (await ask((image) => ({ kind: 'starts', image, ...START_BOUNDS }), request)) as
        StartForecast | NoForecast
    },
    async tryChange(change: SettingsChange) {
      const withheld = withheldBecause(drift.report())
      if (withheld !== null) return withheld
      const bounds = { withinMs: CHANGE_TIMEOUT_MS, horizonMs: HORIZON_MS, maxRuns: MAX_CHANGE_PAIRS }
      return (await ask((image) => ({ kind: 'change', image, change, ...bounds }))) as
        ChangeForecast | NoForecast
    },
    drift: (): DriftReport => drift.report(),
    speeds: () => speeds.all(),
    async close() {
      clearInterval(timer)
      unsubscribe()
      await process.close()
    },
  }
}

function placementOf(views: Views, taskId: string | null): Placement | null {
  return (taskId === null ? undefined : views.openTask(taskId))?.placement ?? null
}

/** Lets other work run. */
function yieldToOthers(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const START_BOUNDS = { withinMs: STARTS_TIMEOUT_MS, horizonMs: HORIZON_MS, maxRuns: MAX_START_RUNS }
const DRIFT_BOUNDS = { withinMs: 10_000, horizonMs: HORIZON_MS, maxRuns: 0 }

const TOO_MANY: NoForecast = { reason: 'TOO_LARGE', detail: `more than ${MAX_OPEN_TASKS} tasks are open` }

/** Starts with the first request, and again after a failure. */
class TwinProcess {
  readonly #log: (line: string) => void
  #process: JobProcess<TwinJob, TwinAnswer> | null = null
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #isClosed = false

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  async ask(job: TwinJob): Promise<TwinAnswer> {
    if (this.#waiting >= MAX_WAITING)
      return { reason: 'NOT_YET', detail: 'other requests are in progress; try again in a few seconds' }
    this.#waiting += 1
    const answered = this.#last.then(() => this.#run(job))
    this.#last = answered
    return answered.finally(() => (this.#waiting -= 1))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#process?.end()
  }

  async #run(job: TwinJob): Promise<TwinAnswer> {
    if (this.#isClosed) return { reason: 'FAILED', detail: 'the controller is stopping' }
    if (this.#process === null || this.#process.isEnded)
      this.#process = new JobProcess(workerUrl('twin/twin-worker'), { heapMib: HEAP_MIB })
    try {
      return await this.#process.ask(job)
    } catch (fault) {
      const detail = errorText(fault)
      if (!this.#isClosed) this.#log(`the twin failed: ${detail}`)
      return { reason: 'FAILED', detail: `the twin failed: ${detail}` }
    }
  }
}
