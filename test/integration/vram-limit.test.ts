/** Tasks with a limit of VRAM, on a declared GPU that measures what they use. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { LiveCluster, until } from '../support/live-cluster.ts'

const INVENTORY = JSON.stringify({ gpus: [{ model: 'declared', vram_mib: 24_576 }] })
const USES = (mib: number): string => `truncate -s ${mib}K "$HEADROOM_WORK/.headroom-vram"; sleep 600`

let cluster: LiveCluster

beforeAll(async () => {
  cluster = await LiveCluster.start()
  await cluster.startServer('gpu', INVENTORY)
})
afterAll(() => cluster?.end())

interface Task {
  readonly id: string
  readonly state: string
  readonly exit_code: number | null
  readonly end_code: string | null
  readonly end_reason: string | null
}

it('A task above its VRAM limit fails, and tasks above their demand continue', async () => {
  const submit = async (name: string, usedMib: number, more: object): Promise<string> => {
    const command = ['sh', '-c', USES(usedMib)]
    return (await cluster.send<Task>('POST', '/tasks', { name, vram_mib: 4000, command, ...more })).id
  }
  const greedy = await submit('greedy', 6001, { vram_limit_mib: 6000 })
  const within = await submit('within', 6000, { vram_limit_mib: 6000 })
  const free = await submit('free', 9000, {})
  const taskOf = (id: string): Promise<Task> => cluster.get(`/tasks/${id}`)
  await until('greedy has failed', async () => (await taskOf(greedy)).state === 'failed')
  expect(await taskOf(greedy)).toMatchObject({
    exit_code: 137,
    end_code: 'vram_limit',
    end_reason:
      'VRAM_LIMIT_EXCEEDED: it used 6001 MiB of VRAM on a GPU, and its limit (vram_limit_mib) is 6000 MiB',
  })
  expect([(await taskOf(within)).state, (await taskOf(free)).state]).toEqual(['running', 'running'])
})
