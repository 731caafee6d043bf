/**
 * Measures how long a start under the guard takes on this machine: one task at a time on an otherwise idle
 * cluster.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { eventsOf } from './real-run.ts'
import { taskCommand } from './task-command.ts'

const STARTS = 11
const BUSY_MS = 300
const INVENTORY = JSON.stringify({ gpus: [{ vram_mib: 8192 }] })

export interface StartTimes {
  /** From the order (`task_placed`) to `task_started`, ascending. */
  readonly ms: readonly DurationMs[]
  readonly medianMs: DurationMs
}

export async function calibrateStart(): Promise<StartTimes> {
  const cluster = await LiveCluster.start()
  try {
    await cluster.send('PUT', '/config', { heartbeat_seconds: 1 })
    await cluster.startServer('server-0', INVENTORY)
    for (let i = 0; i < STARTS; i++) await runOne(cluster, `start-${i}`)
    const events = await eventsOf(cluster)
    const at = (kind: string): Map<string | null, number> =>
      new Map(events.filter((event) => event.kind === kind).map(({ task, at }) => [task, at] as const))
    const [placed, started] = [at('task_placed'), at('task_started')]
    return startTimesOf([...placed].map(([task, placedAt]) => (started.get(task) ?? NaN) - placedAt))
  } finally {
    await cluster.end()
  }
}

/** @param ms an odd number of values */
export function startTimesOf(ms: readonly DurationMs[]): StartTimes {
  const rising = ms.toSorted((a, b) => a - b)
  return { ms: rising, medianMs: rising[rising.length >> 1] ?? NaN }
}

async function runOne(cluster: LiveCluster, name: string): Promise<void> {
  const command = taskCommand(cluster.path(`${name}.note`), [[BUSY_MS, 0]])
  const { id } = await cluster.send<{ readonly id: string }>('POST', '/tasks', {
    name,
    vram_mib: 1000,
    command,
  })
  await until(
    `${name} is over`,
    async () => (await cluster.get<{ readonly state: string }>(`/tasks/${id}`)).state === 'completed',
  )
}
