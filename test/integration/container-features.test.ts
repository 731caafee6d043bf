/** A task of a container image and a real server without a container runtime. */
import { existsSync } from 'node:fs'
import { afterEach, describe, expect, it } from 'vitest'
import { LiveCluster, until } from '../support/live-cluster.ts'
import { FakeEngine, IMAGE_ID } from '../support/fake-engine.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'

const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'

interface Task {
  readonly id: string
  readonly state: string
  readonly attempt: number
  readonly image: string | null
  readonly wait: { readonly reason: string; readonly sentence: string } | null
}

describe.skipIf(whyNoNatsServer() !== null)('a server with a container engine', { timeout: 180_000 }, () => {
  let cluster: LiveCluster | null = null
  const engine = new FakeEngine()
  afterEach(async () => {
    await cluster?.end()
    await engine.end()
  })

  it('offers images, asks its engine for the container, and reports why it did not start', async () => {
    await engine.start()
    engine.answer = ({ path }) =>
      path.endsWith('/start') ? { status: 500, body: { message: 'no room' } } : null
    const live = (cluster = await LiveCluster.start())
    const env = { DOCKER_HOST: `unix://${engine.socketPath}` }
    await live.startServer('alpha', INVENTORY, env, '--container-runtime', 'docker')
    const { items } = await live.get<{ readonly items: readonly { readonly features: unknown }[] }>('/nodes')
    expect(items.map(({ features }) => features)).toEqual([expect.arrayContaining(['image'])])
    const command = ['touch', live.path('on-host')]
    const { id } = await live.send<Task>('POST', '/tasks', {
      vram_mib: 1_000,
      command,
      image: 'team/train:1',
    })
    type Refused = { readonly start_refusals: readonly { readonly code: string; readonly detail: string }[] }
    const refusals = async () => (await live.get<Refused>(`/tasks/${id}`)).start_refusals
    await until('it is refused', async () => (await refusals()).length > 0)
    expect(await refusals()).toEqual([
      expect.objectContaining({ code: 'container_not_started', detail: 'container: no room' }),
    ])
    expect(engine.callsOf('POST', /\/containers\/create$/)[0]?.body).toMatchObject({
      Image: IMAGE_ID,
      Labels: { 'io.headroom.task': id, 'io.headroom.attempt': '1', 'io.headroom.epoch': '1' },
    })
    expect(existsSync(live.path('on-host'))).toBe(false)
  })
})

describe.skipIf(whyNoNatsServer() !== null)('an image that is pulled', { timeout: 180_000 }, () => {
  let cluster: LiveCluster | null = null
  const engine = new FakeEngine()
  afterEach(async () => {
    await cluster?.end()
    await engine.end()
  })

  it('slowly holds no VRAM: another task runs on the GPU meanwhile', async () => {
    await engine.start()
    let endPull = (): void => {}
    const pulled = new Promise<void>((resolve) => (endPull = resolve))
    engine.answer = async ({ path }) => {
      if (path === '/images/create') await pulled
      // Its container is no more than a record, so that the attempt is refused.
      return path.endsWith('/start') ? { status: 500, body: { message: 'no room' } } : null
    }
    const live = (cluster = await LiveCluster.start())
    const env = { DOCKER_HOST: `unix://${engine.socketPath}` }
    await live.startServer('alpha', INVENTORY, env, '--container-runtime', 'docker')
    const all = { vram_mib: 5_000, command: ['true'] }
    const slow = await live.send<Task>('POST', '/tasks', { ...all, image: 'team/large:1' })
    await until('the pull has begun', async () => {
      await live.get<Task>(`/tasks/${slow.id}`)
      return engine.callsOf('POST', /create$/).length > 0
    })
    expect(await live.get<Task>(`/tasks/${slow.id}`)).toMatchObject({
      state: 'pending',
      attempt: 0,
      placement: null,
      wait: { reason: 'PREPARING' },
      preparing: [{ node_name: 'alpha', state: 'preparing' }],
    })
    const other = await live.send<Task>('POST', '/tasks', all)
    await until('the other task has run', async () => {
      return (await live.get<Task>(`/tasks/${other.id}`)).state === 'completed'
    })
    expect((await live.get<Task>(`/tasks/${slow.id}`)).attempt).toBe(0)
    expect(engine.callsOf('POST', /\/containers\/create$/)).toEqual([])
    endPull()
    await until('its container is asked for', async () => {
      await live.get<Task>(`/tasks/${slow.id}`)
      return engine.callsOf('POST', /\/containers\/create$/).length > 0
    })
    // The start has not pulled it again.
    expect(engine.callsOf('POST', /^\/images\/create$/)).toHaveLength(1)
    expect((await live.get<Task>(`/tasks/${slow.id}`)).attempt).toBe(1)
  })
})

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
            'Waiting for a node that supports container images (feature image): ' +
            'the task would fit on alpha, which lacks this feature.',
        },
      })
      expect(existsSync(live.path('from-image'))).toBe(false)
    })
  },
)
