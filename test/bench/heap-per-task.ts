/** `heap_per_task_bytes`: heap per task for a million pending tasks, including ids and names. */
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { CAPACITY_MIB, EngineCluster, requestOf } from './engine-cluster.ts'
import { collectGarbage } from './stopwatch.ts'
import type { Reading } from './targets.ts'

const TASKS = 1_000_000
const GPUS = 1_000
const SUBMITTED_AT_ONCE = 2_000

export async function measureHeap(): Promise<readonly Reading[]> {
  // A store that keeps nothing: tasks on disk are not part of the heap.
  const store = createMemoryStore({ isForgetful: true, retainEvents: 0, retainFinished: false })
  const cluster = await EngineCluster.withNodes({ gpus: GPUS, config: {}, store })
  for (let i = 0; i < GPUS; i++) cluster.submit(requestOf(CAPACITY_MIB))
  cluster.settle()
  cluster.reportStarts()
  const random = seededStream(9, 'bench/pending')
  const before = heapUsed()
  for (let i = 0; i < TASKS; i++) {
    cluster.submit(
      requestOf(1 + Math.floor(random() * CAPACITY_MIB), {
        gpuCount: random() < 0.9 ? 1 : 2,
        noswap: random() < 0.05 ? 1 : 0,
        priority: random() < 0.1 ? 0 : 2,
      }),
    )
    if (i % SUBMITTED_AT_ONCE === SUBMITTED_AT_ONCE - 1) cluster.passTime(1)
  }
  const bytes = heapUsed() - before
  const { pendingCount } = cluster.engine.cluster
  if (pendingCount !== TASKS) throw new Error(`${pendingCount} tasks wait instead of ${TASKS}`)
  return [
    {
      name: 'heap_per_task_bytes',
      value: Math.round(bytes / TASKS),
      note: `${TASKS} pending, ids drawn by the controller`,
    },
  ]
}

function heapUsed(): number {
  collectGarbage()
  collectGarbage()
  return process.memoryUsage().heapUsed
}
