/**
 * `blocked_pass_ms`: a scheduling pass while 100,000 tasks of many sizes wait and all of 1,000 GPUs are full.
 * Before each pass one GPU gets slightly more free VRAM and another slightly less, so that the pass must
 * check and finds too little for any task.
 */
import { runCycle } from '../../controller/engine/cycle.ts'
import { setCapacity } from '../../controller/state/gpu-ledger.ts'
import type { LiveGpu } from '../../controller/state/facts.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { CAPACITY_MIB, EngineCluster, requestOf } from './engine-cluster.ts'
import { collectGarbage, median, timed } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const GPUS = 1_000
const PENDING = 100_000
/** Becomes free and is used again, as memory of a foreign process; the smallest task needs more. */
const SLACK_MIB = 100
const SMALLEST_MIB = SLACK_MIB + 1
/**
 * After reservation_after_seconds, so that the head of the queue has reserved GPUs, and after every aging of
 * an entry.
 */
const WAITED_MS = 900_000
const SUBMITTED_AT_ONCE = 1_000
const PASSES_A_BATCH = 100
const WARM_UP_BATCHES = 5
const BATCHES = 21

export async function measureBlockedPass(): Promise<readonly Reading[]> {
  const cluster = await EngineCluster.withNodes({ gpus: GPUS, config: {} })
  fill(cluster)
  const { cluster: state } = cluster.engine
  const gpus: LiveGpu[] = [...state.nodes.values()].flatMap((node) => node.gpus)
  const now = cluster.clock.now()
  const setForeign = (gpu: LiveGpu, mib: number): void => {
    gpu.foreignMib = mib
    setCapacity(gpu, state.policy.overcommitPercent, state.policy.safetyReserveMib)
    state.touchGpu(gpu)
  }
  for (const gpu of gpus) setForeign(gpu, SLACK_MIB)
  runCycle(state, now)
  let next = 0
  const pass = (): void => {
    setForeign(gpus[next % gpus.length] as LiveGpu, SLACK_MIB)
    next += 1
    setForeign(gpus[next % gpus.length] as LiveGpu, 0)
    runCycle(state, now)
  }
  const batches: number[] = []
  for (let batch = 0; batch < WARM_UP_BATCHES + BATCHES; batch++) {
    collectGarbage()
    const { cpuS } = timed(() => {
      for (let i = 0; i < PASSES_A_BATCH; i++) pass()
    })
    if (batch >= WARM_UP_BATCHES) batches.push((1000 * cpuS) / PASSES_A_BATCH)
  }
  if (state.pendingCount !== PENDING || cluster.placed !== GPUS) throw new Error('a blocked task was placed')
  const shapes = [...state.queues].length
  return [
    {
      name: 'blocked_pass_ms',
      value: median(batches),
      note: `${PENDING} pending in ${shapes} shapes, two GPUs of ${GPUS} change before each pass`,
    },
  ]
}

/** One task on each GPU that leaves only the slack free, and then the others. */
function fill(cluster: EngineCluster): void {
  const random = seededStream(5, 'bench/pending')
  for (let i = 0; i < GPUS; i++) cluster.submit(requestOf(CAPACITY_MIB - SLACK_MIB))
  cluster.settle()
  cluster.reportStarts()
  for (let i = 0; i < PENDING; i++) {
    cluster.submit(
      requestOf(SMALLEST_MIB + Math.floor(random() * (CAPACITY_MIB - SMALLEST_MIB)), {
        gpuCount: [1, 1, 1, 1, 2, 2, 4, 8][Math.floor(random() * 8)] as number,
        noswap: random() < 0.2 ? 1 : 0,
        priority: random() < 0.1 ? 0 : random() < 0.5 ? 1 : 2,
      }),
    )
    if (i % SUBMITTED_AT_ONCE === 0) cluster.passTime(1)
  }
  cluster.passTime(WAITED_MS)
  cluster.settle()
}
