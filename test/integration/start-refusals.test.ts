/**
 * Real servers, one of which cannot start any task: a failure of the host is never a failure of the task
 * (safety 3).
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const TASKS = 60

interface Task {
  readonly id: string
  readonly state: string
  readonly end_reason: string | null
  readonly start_refusals: readonly { readonly node_name: string; readonly code: string }[]
  readonly wait: { readonly reason: string; readonly sentence: string } | null
}

interface Node {
  readonly name: string
  readonly auto_cordon: { readonly code: string } | null
}

describe.skipIf(whyNoNatsServer() !== null)('several process servers', { timeout: 180_000 }, () => {
  let cluster: LiveCluster | null = null
  afterEach(async () => cluster?.end())

  it('with one work folder removed: none of 60 tasks fails, and that node is auto-cordoned', async () => {
    const live = (cluster = await LiveCluster.start())
    const names = ['alpha', 'beta', 'gamma']
    await Promise.all(names.map((name) => live.startServer(name, INVENTORY)))
    rmSync(join(live.path('alpha'), 'work'), { recursive: true })
    const submit = (): Promise<Task> =>
      live.send<Task>('POST', '/tasks', {
        vram_mib: 1_500,
        command: ['sleep', '0.2'],
        on_node_loss: 'requeue',
      })
    const tasks = await Promise.all(Array.from({ length: TASKS }, submit))
    const states = async (): Promise<readonly string[]> =>
      Promise.all(tasks.map(async ({ id }) => (await live.get<Task>(`/tasks/${id}`)).state))
    await until(
      'all have ended',
      async () => (await states()).every((state) => !['pending', 'assigned', 'running'].includes(state)),
      120_000,
    )
    expect(new Set(await states())).toEqual(new Set(['completed']))
    const { items } = await live.get<{ readonly items: readonly Node[] }>('/nodes')
    expect(items.filter(({ auto_cordon: closed }) => closed !== null)).toMatchObject([
      { name: 'alpha', auto_cordon: { code: 'work_folder' } },
    ])
  })

  it('and a command that no server finds: it waits, and no node is cordoned', async () => {
    const live = (cluster = await LiveCluster.start())
    await Promise.all(['alpha', 'beta'].map((name) => live.startServer(name, INVENTORY)))
    const { id } = await live.send<Task>('POST', '/tasks', { vram_mib: 1_000, command: ['no-such-program'] })
    const task = (): Promise<Task> => live.get<Task>(`/tasks/${id}`)
    await until('it waits', async () => (await task()).wait?.reason === 'START_REFUSED')
    const { state, start_refusals: refusals, wait } = await task()
    expect(state).toBe('pending')
    // execvp returns EACCES if a folder of PATH is not readable.
    expect(refusals.map(({ code }) => code)).toEqual([
      expect.stringMatching(/^command_not_/),
      expect.stringMatching(/^command_not_/),
    ])
    expect(wait?.sentence).toMatch(/command no-such-program: (No such file or directory|Permission denied)/)
    const { items } = await live.get<{ readonly items: readonly Node[] }>('/nodes')
    expect(items.map(({ auto_cordon: closed }) => closed)).toEqual([null, null])
  })
})
