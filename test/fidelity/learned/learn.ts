/** Lets a cluster swap tasks of three sizes in and out, and returns what its twin learned of the node. */
import { LiveCluster, until } from '../../support/live-cluster.ts'
import { inventoryOf } from '../real-run.ts'
import type { ScenarioNode } from '../../../simulator/scenario/scenario.ts'
import { taskCommand } from '../task-command.ts'

const SIZES_MIB = [4_000, 8_000, 14_000]
/** Each is a swap-out and a swap-in of every task: 36 swaps. */
const ROUNDS = 6
const LONG_MS = 3_600_000

export interface Learned {
  readonly out: LearnedCopies
  readonly in: LearnedCopies
}

interface LearnedCopies {
  readonly fixed_ms: number
  readonly mib_per_s: number
  readonly observed: number
  readonly error_percent: number | null
  readonly profile_error_percent: number | null
}

interface TaskBody {
  readonly state: string
  readonly residency?: string
  readonly placement?: { readonly wants_gpu: boolean } | null
}

interface TwinBody {
  readonly speeds: readonly { readonly methods: readonly (Learned & { readonly method: string })[] }[]
}

/** @param node its GPUs are declared so, one for each task */
export async function learn(node: ScenarioNode): Promise<Learned> {
  const cluster = await LiveCluster.start()
  try {
    await cluster.send('PUT', '/config', { heartbeat_seconds: 1, safety_reserve_mib: 0 })
    await cluster.startServer(node.name, inventoryOf({ ...node, gpuCount: SIZES_MIB.length }))
    await Promise.all(SIZES_MIB.map((vramMib) => swapOften(cluster, vramMib)))
    const { speeds } = await cluster.get<TwinBody>('/twin')
    const learned = speeds[0]?.methods.find(({ method }) => method === 'driver')
    if (learned === undefined) throw new Error('the twin has learned nothing')
    return learned
  } finally {
    await cluster.end()
  }
}

async function swapOften(cluster: LiveCluster, vramMib: number): Promise<void> {
  const name = `idles-${vramMib}`
  const { id } = await cluster.send<{ readonly id: string }>('POST', '/tasks', {
    name,
    vram_mib: vramMib,
    // A whole GPU for each, so that no copy waits for another.
    gpu_mode: 'exclusive',
    command: taskCommand(cluster.path(`${name}.note`), [
      [500, LONG_MS],
      [1, 0],
    ]),
  })
  const reaches = (residency: string): Promise<void> =>
    until(`${name} is ${residency} and idle`, async () => {
      const task = await cluster.get<TaskBody>(`/tasks/${id}`)
      return task.state === 'running' && task.residency === residency && task.placement?.wants_gpu === false
    })
  await reaches('resident')
  for (let round = 0; round < ROUNDS; round++) {
    await cluster.send('POST', `/tasks/${id}/swap-out`, {})
    await reaches('swapped_out')
    await cluster.send('POST', `/tasks/${id}/swap-in`, {})
    await reaches('resident')
  }
}
