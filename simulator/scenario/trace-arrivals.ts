/** The tasks of a `trace` item, streamed from its file in chunks. */
import type { Random } from '../../controller/ports/random.ts'
import { seededStream } from '../kernel/seeded-random.ts'
import { createSelection } from '../trace/select.ts'
import { TraceError } from '../trace/trace-error.ts'
import { openTrace, type TraceFile } from '../trace/trace-file-reader.ts'
import type { TraceTask, Work } from '../trace/trace-format.ts'
import { aloneMsOf } from '../trace/work.ts'
import type { ArrivalSource } from './arrivals.ts'
import { activityOf } from './draw-duration.ts'
import type { ActivitySpec, SimTask, TraceItem } from './scenario.ts'
import { DEFAULT_RUN_POLICY } from '../../protocol/task.ts'

/** About 1 MiB of the file each. A trace below 16 MiB is read in one go. */
const BATCHES_PER_FILL = 16
const NO_LABELS = Object.freeze({})

/** Returns why an id is not available (another item makes it), or null if it is. */
export type IdTaken = (id: string) => string | null

/**
 * The sampled tasks, and generated activity, depend only on the seed and the task ids (streams
 * `workload/<name>/sample` and `…/activity`). `fill` throws TraceError for faults of the file and ids that
 * `isTaken`.
 */
export function traceArrivals(item: TraceItem, random: Random, isTaken: IdTaken): ArrivalSource {
  const sampleSeed = random.stream(`workload/${item.name}/sample`)()
  const workOf =
    item.activity === null
      ? null
      : drawnWork(item.activity, random.stream(`workload/${item.name}/activity`)())
  return new TraceArrivals(item, sampleSeed, workOf, isTaken)
}

type WorkOf = (task: TraceTask) => Work

/** Each task has its own stream, so that skipping one does not change the others. */
function drawnWork(activity: ActivitySpec, seed: number): WorkOf {
  const model = activityOf(activity)
  return ({ id, work }) => model(aloneMsOf(work), seededStream(seed, id))
}

class TraceArrivals implements ArrivalSource {
  readonly #item: TraceItem
  readonly #isTaken: IdTaken
  readonly #workOf: WorkOf | null
  readonly #select: ReturnType<typeof createSelection>
  #trace: TraceFile | null = null
  #batches: AsyncIterator<readonly TraceTask[]> | null = null
  #isAtEnd = false
  #tasks: SimTask[] = []
  #taken = 0

  constructor(item: TraceItem, sampleSeed: number, workOf: WorkOf | null, isTaken: IdTaken) {
    this.#workOf = workOf
    this.#item = item
    this.#isTaken = isTaken
    this.#select = createSelection({
      fromMs: item.fromMs,
      ...(item.toMs === null ? {} : { toMs: item.toMs }),
      ...(item.maxGpus === null ? {} : { maxGpus: item.maxGpus }),
      sample: item.sample,
      seed: sampleSeed,
      timeScale: item.timeScale,
    })
  }

  get needsFill(): boolean {
    return this.#taken === this.#tasks.length && !this.#isAtEnd
  }

  next(): SimTask | null {
    if (this.needsFill) throw new Error('arrivals have to be filled before the next one is taken')
    return this.#tasks[this.#taken++] ?? null
  }

  /** Reads until a task is available or the file ends. */
  async fill(): Promise<void> {
    if (!this.needsFill) return
    this.#trace ??= await openTrace(this.#item.file)
    this.#batches ??= this.#trace.batches()[Symbol.asyncIterator]()
    this.#tasks = []
    this.#taken = 0
    for (let batch = 0; batch < BATCHES_PER_FILL || this.#tasks.length === 0; batch++) {
      const { value, done } = await this.#batches.next()
      if (done === true) {
        this.#isAtEnd = true
        return
      }
      for (const task of value) this.#take(task)
    }
  }

  async close(): Promise<void> {
    this.#isAtEnd = true
    if (this.#batches === null) this.#trace?.close()
    else await this.#batches.return?.()
  }

  #take(task: TraceTask): void {
    const selected = this.#select(task)
    if (typeof selected === 'string') return
    const id = `${this.#item.idPrefix}${task.id}`
    const taken = this.#isTaken(id)
    if (taken !== null)
      throw new TraceError(
        { file: this.#item.file, field: 'id' },
        `${id} is ${taken}: give that item another name or ID`,
      )
    this.#tasks.push(simTaskOf(selected, id, this.#workOf?.(task) ?? task.work))
  }
}

function simTaskOf(task: TraceTask, id: string, work: Work): SimTask {
  return {
    at: task.at,
    request: {
      id,
      name: null,
      vramMib: task.vram_mib === 0 ? null : task.vram_mib,
      gpuCount: task.gpus,
      gpuMode: task.gpu_mode,
      noswap: task.noswap,
      priority: task.priority,
      groups: task.groups,
      labels: NO_LABELS,
      owner: task.owner,
      command: null,
      ...DEFAULT_RUN_POLICY,
    },
    work,
    allocSteps: task.alloc,
    cancelAt: task.cancel_at,
  }
}
