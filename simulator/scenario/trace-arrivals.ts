/** The tasks of a `trace` item, streamed from its file in chunks. */
import type { Random } from '../../controller/ports/random.ts'
import { createSelection } from '../trace/select.ts'
import { TraceError } from '../trace/trace-error.ts'
import { openTrace, type TraceFile } from '../trace/trace-file-reader.ts'
import type { TraceTask } from '../trace/trace-format.ts'
import type { ArrivalSource } from './arrivals.ts'
import type { SimTask, TraceItem } from './scenario.ts'
import { TASK_DEFAULTS } from './task-request.ts'

/** About 1 MiB of the file each. A trace below 16 MiB is read in one go. */
const BATCHES_PER_FILL = 16
const NO_LABELS = Object.freeze({})

/** Answers why an id may not be had, because another item makes it; null: it may. */
export type IdTaken = (id: string) => string | null

/**
 * Which tasks a sample takes depends on the seed and their ids alone (stream `workload/<name>/sample`).
 * Faults of the file, and ids that `isTaken`, are thrown by `fill` as TraceError.
 */
export function traceArrivals(item: TraceItem, random: Random, isTaken: IdTaken): ArrivalSource {
  return new TraceArrivals(item, random.stream(`workload/${item.name}/sample`)(), isTaken)
}

class TraceArrivals implements ArrivalSource {
  readonly #item: TraceItem
  readonly #isTaken: IdTaken
  readonly #select: ReturnType<typeof createSelection>
  #trace: TraceFile | null = null
  #batches: AsyncIterator<readonly TraceTask[]> | null = null
  #isAtEnd = false
  #tasks: SimTask[] = []
  #taken = 0

  constructor(item: TraceItem, sampleSeed: number, isTaken: IdTaken) {
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

  /** Leaves something to take, or the end. */
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
    if (taken !== null) throw new TraceError({ file: this.#item.file, field: 'id' }, `${id} is ${taken}: give that item another name or id`)
    this.#tasks.push(simTaskOf(selected, id))
  }
}

function simTaskOf(task: TraceTask, id: string): SimTask {
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
      maxRuntimeSeconds: null,
      onNodeLoss: TASK_DEFAULTS.onNodeLoss,
    },
    work: task.work,
    allocSteps: task.alloc,
    cancelAt: task.cancel_at,
  }
}
