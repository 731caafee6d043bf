/**
 * `decisions_scaling` and `decisions_per_cpu_s`: tasks of many sizes placed one by one, each in a separate
 * instant.
 */
import type { TaskRequest } from '../../protocol/task.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { lognormal } from '../../simulator/kernel/distributions.ts'
import { CAPACITY_MIB, EngineCluster, requestOf } from './engine-cluster.ts'
import { collectGarbage, inShort, median, timed } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const SMALL_GPUS = 1_000
const LARGE_GPUS = 10_000
/**
 * Number of placed tasks when a measurement begins; as many more may follow. Two of the median size fill a
 * GPU.
 */
const TASKS_PER_GPU = 1
const OVERCOMMIT_PERCENT = 50
const BATCH = 5_000
/** One task turnover is three inputs and three cycles. */
const TURN_OVER_BATCH = 2_000
const ROUNDS = 7

export async function measureScaling(): Promise<readonly Reading[]> {
  const small = await Load.on(SMALL_GPUS)
  const large = await Load.on(LARGE_GPUS)
  const warmUp = [small.turnOver(TURN_OVER_BATCH), large.turnOver(TURN_OVER_BATCH)]
  if (warmUp.includes(0)) throw new Error('nothing was placed')
  const ratios: number[] = []
  const rates: number[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const rateOf = (load: Load): number => {
      collectGarbage()
      const { cpuS, result } = timed(() => load.turnOver(TURN_OVER_BATCH))
      return result / cpuS
    }
    const before = rateOf(small)
    rates.push(rateOf(large))
    ratios.push((rates.at(-1) as number) / ((before + rateOf(small)) / 2))
  }
  const rate = median(rates)
  const note =
    `submit, place, start, finish: ${inShort(rate)}/s at 10,000 GPUs, ` +
    `${inShort(rate / median(ratios))}/s at 1,000; ${ROUNDS} rounds`
  return [{ name: 'decisions_scaling', value: median(ratios), note }]
}

export async function measureDecisions(): Promise<readonly Reading[]> {
  const load = await Load.on(LARGE_GPUS)
  const rates: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    collectGarbage()
    const { cpuS, result } = timed(() => load.place(BATCH))
    // The first round is a warm-up.
    if (round > 0) rates.push(result / cpuS)
    load.start()
    load.finishOldest(BATCH)
  }
  const note =
    `submit → placed → durable event, one by one; Slurm 22.05 reaches 292; ${ROUNDS} rounds ` + `of ${BATCH}`
  return [{ name: 'decisions_per_cpu_s', value: median(rates), note }]
}

/** A cluster whose oldest tasks are replaced by new ones, so that its load stays constant. */
class Load {
  readonly #cluster: EngineCluster
  readonly #next: () => TaskRequest
  #running: ReturnType<EngineCluster['reportStarts']> = []
  #oldest = 0

  private constructor(cluster: EngineCluster, next: () => TaskRequest) {
    this.#cluster = cluster
    this.#next = next
  }

  static async on(gpus: number): Promise<Load> {
    const config = { default_vram_overcommit_percent: OVERCOMMIT_PERCENT }
    const load = new Load(await EngineCluster.withNodes({ gpus, config }), requests())
    load.place(TASKS_PER_GPU * gpus)
    load.start()
    return load
  }

  /** Submits one task per instant; returns the number of placed tasks. */
  place(count: number): number {
    const before = this.#cluster.placed
    for (let i = 0; i < count; i++) {
      this.#cluster.submit(this.#next())
      this.#cluster.passTime(1)
    }
    return this.#cluster.placed - before
  }

  start(): void {
    this.#running.push(...this.#cluster.reportStarts())
  }

  finishOldest(count: number): void {
    for (let i = 0; i < count; i++) this.#finishOne()
    this.#running = this.#running.slice(this.#oldest)
    this.#oldest = 0
  }

  /**
   * For each task that is submitted, placed and started, the oldest one finishes. Returns the number of
   * placed tasks.
   */
  turnOver(count: number): number {
    const before = this.#cluster.placed
    for (let i = 0; i < count; i++) {
      this.#cluster.submit(this.#next())
      this.#cluster.passTime(1)
      this.start()
      this.#finishOne()
    }
    this.finishOldest(0)
    return this.#cluster.placed - before
  }

  #finishOne(): void {
    const oldest = this.#running[this.#oldest]
    if (oldest === undefined) throw new Error('no task runs that could finish')
    this.#oldest += 1
    this.#cluster.reportFinish(oldest)
    this.#cluster.passTime(1)
  }
}

/** Of every kind: on one GPU or several, noswap, P0; demands of thousands of sizes. */
function requests(): () => TaskRequest {
  const random = seededStream(3, 'bench/requests')
  const demand = lognormal(14_000, 0.5)
  return () => {
    const draw = random()
    return requestOf(Math.min(CAPACITY_MIB, Math.round(demand.sample(random))), {
      gpuCount: draw < 0.9 ? 1 : draw < 0.96 ? 2 : draw < 0.99 ? 4 : 8,
      noswap: random() < 0.05 ? 1 : 0,
      priority: random() < 0.1 ? 0 : 2,
    })
  }
}
