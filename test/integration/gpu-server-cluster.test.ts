import { readFileSync, readdirSync } from 'node:fs'
import { createConnection } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'

interface Task {
  readonly id: string
  readonly state: string
  readonly residency: string
  readonly attempt: number
}

describe.skipIf(whyNoNatsServer() !== null)(
  'controller, broker and a process server',
  { timeout: 300_000 },
  () => {
    let cluster: LiveCluster | null = null
    afterEach(async () => {
      for (const pid of pidsWith(`${cluster?.folder}`)) killed(pid)
      await cluster?.end()
      await until('no process is left', () => pidsWith(`${cluster?.folder}`).length === 0)
    })

    it('stop an idle task for another one, also over a server restart, and return it', async () => {
      cluster = await LiveCluster.start()
      const { send, get } = { send: cluster.send.bind(cluster), get: cluster.get.bind(cluster) }
      const task = (id: string): Promise<Task> => get(`/tasks/${id}`)
      const server = await cluster.startServer('alpha', INVENTORY, {}, '--idle-after', '1s')
      await send('PUT', '/config', {
        default_vram_overcommit_percent: 100,
        safety_reserve_mib: 0,
        idle_swap_out_seconds: 2,
      })
      const idle = await send<Task>('POST', '/tasks', {
        vram_mib: 6_000,
        command: ['sh', '-c', 'exec sleep 1000'],
      })
      await until('the first runs', async () => (await task(idle.id)).state === 'running')
      let pid = 0
      await until('its process sleeps', () => {
        pid = pidOf(idle.id) ?? 0
        return pid !== 0 && stateOf(pid) === 'S'
      })
      const second = await send<Task>('POST', '/tasks', {
        vram_mib: 6_000,
        command: ['sh', '-c', 'exec sleep 5'],
      })
      await until('the second runs', async () => (await task(second.id)).state === 'running')
      expect([stateOf(pid), (await task(idle.id)).residency]).toEqual(['T', 'swapped_out'])

      await server.end('SIGKILL')
      await server.start(() => server.output.split('GPU server runs').length === 3)
      await until('the second is done', async () => (await task(second.id)).state === 'completed')
      expect([stateOf(pid), (await task(idle.id)).residency]).toEqual(['T', 'swapped_out'])

      const path = /HEADROOM_SOCKET=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'latin1'))?.[1] ?? ''
      const socket = createConnection(path, () => socket.end('{"want": true}\n'))
      await until('the first runs again', () => stateOf(pid) === 'S')
      await until('the controller knows', async () => (await task(idle.id)).residency === 'resident')
      expect(await task(idle.id)).toMatchObject({ state: 'running', attempt: 1 })
    })
  },
)

function pidsWith(text: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/environ`, 'latin1').includes(text)
        ? [Number(name)]
        : []
    } catch {
      return []
    }
  })
}

function pidOf(taskId: string): number | undefined {
  return pidsWith(`HEADROOM_TASK_ID=${taskId}\0`).find((each) =>
    readFileSync(`/proc/${each}/cmdline`, 'latin1').startsWith('sleep'),
  )
}

function stateOf(pid: number): string {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  return text.slice(text.lastIndexOf(')') + 2)[0] ?? ''
}

function killed(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has already ended.
  }
}
