/** A task of a container image and a real server without a container runtime. */
import { existsSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'

interface Task {
  readonly id: string
  readonly state: string
  readonly attempt: number
  readonly image: string | null
  readonly wait: { readonly reason: string; readonly sentence: string } | null
}

describe.skipIf(whyNoNatsServer() !== null)(
  'a server without a container runtime',
  { timeout: 180_000 },
  () => {
    let cluster: LiveCluster | null = null
    afterEach(async () => cluster?.end())

    it('starts no task of an image: the task waits with the name of the feature, others run', async () => {
      const live = (cluster = await LiveCluster.start())
      await live.startServer('alpha', INVENTORY, {}, '--container-runtime', 'none')
      const submit = (name: string, more: object): Promise<Task> =>
        live.send<Task>('POST', '/tasks', {
          vram_mib: 1_000,
          command: ['touch', live.path(name)],
          ...more,
        })
      const container = await submit('from-image', { image: 'docker.io/library/busybox:1.36' })
      const plain = await submit('from-host', {})
      await until('the other task has run', async () => {
        return (await live.get<Task>(`/tasks/${plain.id}`)).state === 'completed'
      })
      expect(existsSync(live.path('from-host'))).toBe(true)
      expect(await live.get<Task>(`/tasks/${container.id}`)).toMatchObject({
        state: 'pending',
        attempt: 0,
        image: 'docker.io/library/busybox:1.36',
        wait: {
          reason: 'FEATURE_MISSING',
          sentence:
            'Waits for a node that offers container images (feature image): ' +
            'alpha could take it and does not.',
        },
      })
      expect(existsSync(live.path('from-image'))).toBe(false)
    })
  },
)
