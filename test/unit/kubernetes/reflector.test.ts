/** The reflector on the API server in memory, in virtual time, with its faults. */
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { CONFIG_MAPS, type KubeApi, KubeError, type KubeObject } from '../../../operator/ports/kube-api.ts'
import type { MemoryApi } from '../../../operator/memory-api/memory-api.ts'
import { type Change, Reflector, type ReflectorOptions } from '../../../operator/reflector/reflector.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'

const namespace = 'default'
const key = (name: string) => ({ namespace, name })
const map = (name: string, value = '1'): KubeObject => ({
  metadata: { ...key(name), labels: { test: 'yes' } },
  data: { value },
})
const running = new Set<Reflector>()
afterEach(async () => {
  await Promise.all([...running].map((each) => each.stop()))
  running.clear()
})

function follow(api: KubeApi, options: Partial<ReflectorOptions> = {}) {
  const clock = new VirtualClock(0)
  const told: string[] = []
  const faults: unknown[] = []
  const reflector = new Reflector({
    api,
    kind: CONFIG_MAPS,
    namespace,
    clock,
    random: () => 0.5,
    onChange: (change: Change) => told.push(`${change.type} ${change.object.metadata.name}`),
    onSynced: () => told.push('synced'),
    onFault: (error) => faults.push(error),
    ...options,
  })
  running.add(reflector)
  reflector.start()
  /** Real turns, and virtual time whenever it waits. */
  const until = (isDone: () => boolean) =>
    expect
      .poll(() => {
        if (!isDone()) clock.step(Infinity)
        return isDone()
      })
      .toBe(true)
  return { reflector, clock, told, faults, until }
}

const value = (object: KubeObject | undefined) => (object?.['data'] as { value?: string } | undefined)?.value

/** The same objects and versions. */
async function isEqual(api: KubeApi, { objects }: Reflector): Promise<boolean> {
  const { items } = await api.list(CONFIG_MAPS, { namespace })
  const stored = items.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
  const copied = [...objects.values()].map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
  return JSON.stringify(stored) === JSON.stringify(copied.toSorted((a, b) => (a < b ? -1 : 1)))
}

it('It tells what exists, then that it is complete, then each change', async () => {
  const api = memoryApi()
  for (const name of ['a', 'b', 'c']) await api.create(CONFIG_MAPS, map(name))
  const { reflector, told, until } = follow(api, { pageSize: 2 })
  await until(() => reflector.isSynced && api.watchCount === 1)
  await api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: { data: { value: '2' } } })
  await api.delete(CONFIG_MAPS, key('b'))
  await api.create(CONFIG_MAPS, map('d'))
  await until(() => told.length === 7)
  expect(told).toEqual([
    ...['added a', 'added b', 'added c', 'synced'],
    ...['modified a', 'deleted b', 'added d'],
  ])
  expect(value(reflector.objects.get('default/a'))).toBe('2')
  expect(reflector.figures).toMatchObject({ lists: 1, repairs: 0 })
})

it('A watch that the server ends continues where it was: nothing is listed again', async () => {
  const api = memoryApi()
  const { reflector, told, faults, until } = follow(api)
  await until(() => api.watchCount === 1)
  api.dropWatches()
  await api.create(CONFIG_MAPS, map('a'))
  await until(() => told.includes('added a'))
  expect(reflector.figures.lists).toBe(1)
  expect(faults).toEqual([])
})

it('After 410 it lists again, and tells what it has missed as changes', async () => {
  const api = memoryApi()
  for (const name of ['changed', 'deleted', 'replaced', 'same']) await api.create(CONFIG_MAPS, map(name))
  // While the watch is disconnected, the server discards the events.
  let isAway = false
  const { reflector, told, until } = follow(withWatch(api, () => isAway))
  await until(() => api.watchCount === 1)
  isAway = true
  api.dropWatches()
  await until(() => api.watchCount === 0)
  await api.patch(CONFIG_MAPS, key('changed'), { type: 'merge', body: { data: { value: '2' } } })
  for (const name of ['deleted', 'replaced']) await api.delete(CONFIG_MAPS, key(name))
  await api.create(CONFIG_MAPS, map('replaced', '3'))
  await api.create(CONFIG_MAPS, map('new'))
  api.compact()
  told.length = 0
  isAway = false
  await until(() => reflector.figures.lists === 2)
  expect(told.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    'added new',
    'added replaced',
    'deleted deleted',
    'deleted replaced',
    'modified changed',
  ])
  expect(reflector.figures.repairs).toBe(4)
  expect(await isEqual(api, reflector)).toBe(true)
})

describe('When the API server refuses', () => {
  it('It pauses longer after each failure, at most 30 s, and as long as the server asks', async () => {
    const api = memoryApi()
    const instants: number[] = []
    const refusals = [null, null, 10_000, ...Array.from({ length: 8 }, () => null)]
    for (const retryAfterMs of refusals)
      api.failNext(new KubeError(429, 'TooManyRequests', 'later', { retryAfterMs }))
    const world = follow(api, { onFault: () => instants.push(world.clock.now()) })
    await world.until(() => world.reflector.isSynced)
    const pauses = instants.slice(1).map((instant, i) => instant - (instants[i] as number))
    expect(pauses).toEqual([187, 375, 10_000, 1500, 3000, 6000, 12_000, 22_500, 22_500, 22_500])
  })

  it('It stops at once while it pauses', async () => {
    const api = memoryApi()
    api.failNext(new KubeError(503, 'ServiceUnavailable', 'away'))
    const { reflector, faults } = follow(api)
    await expect.poll(() => faults.length).toBe(1)
    await reflector.stop()
    expect(reflector.isSynced).toBe(false)
  })
})

it('After stop nothing is told, and no watch is left', async () => {
  const api = memoryApi()
  const { reflector, told, until } = follow(api)
  await until(() => api.watchCount === 1)
  await reflector.stop()
  expect(api.watchCount).toBe(0)
  await api.create(CONFIG_MAPS, map('a'))
  expect(told).toEqual(['synced'])
})

type Step = 'create' | 'change' | 'delete' | 'drop' | 'compact' | 'fail'
const anyStep = fc.tuple(
  fc.constantFrom<Step>('create', 'change', 'change', 'delete', 'drop', 'compact', 'fail'),
  fc.integer({ min: 0, max: 4 }),
)

it('Whatever fails, its copy becomes equal to the server, and its changes add up to it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { maxLength: 40 }), async (steps) => {
      const api = memoryApi(8)
      const summed = new Map<string, string>()
      const { reflector, until } = follow(api, {
        onChange: ({ type, object: { metadata } }) => {
          const known = summed.get(metadata.name!)
          expect(type === 'added' ? known === undefined : known !== undefined).toBe(true)
          if (type === 'deleted') summed.delete(metadata.name!)
          else summed.set(metadata.name!, metadata.resourceVersion!)
        },
      })
      for (const [step, index] of steps) await act(api, step, `m${index}`)
      let equal = false
      await until(() => {
        // A fault that is still due is met by one of the two.
        isEqual(api, reflector).then(
          (is) => (equal = is),
          () => {},
        )
        return equal && reflector.isSynced
      })
      const { items } = await api.list(CONFIG_MAPS, { namespace })
      expect([...summed].toSorted(([a], [b]) => (a < b ? -1 : 1))).toEqual(
        items.map(({ metadata }) => [metadata.name, metadata.resourceVersion]),
      )
      await reflector.stop()
      running.delete(reflector)
    }),
    { numRuns: 60 },
  )
})

async function act(api: MemoryApi, step: Step, name: string): Promise<void> {
  const ignored = (): void => {}
  if (step === 'create') await api.create(CONFIG_MAPS, map(name)).catch(ignored)
  else if (step === 'delete') await api.delete(CONFIG_MAPS, key(name)).catch(ignored)
  else if (step === 'change') {
    const body = { data: { value: String(Math.random()) } }
    await api.patch(CONFIG_MAPS, key(name), { type: 'merge', body }).catch(ignored)
  } else if (step === 'drop') api.dropWatches()
  else if (step === 'compact') api.compact()
  else {
    api.dropWatches()
    api.failNext(new KubeError(500, 'InternalError', 'broken'))
    // The next request is the reflector's, whichever of it comes first.
    await new Promise((resolve) => setImmediate(resolve))
  }
}

/** An API whose watches fail while `isAway`. */
function withWatch(api: MemoryApi, isAway: () => boolean): KubeApi {
  return {
    get: (...args) => api.get(...args),
    list: (...args) => api.list(...args),
    create: (...args) => api.create(...args),
    replace: (...args) => api.replace(...args),
    patch: (...args) => api.patch(...args),
    delete: (...args) => api.delete(...args),
    async *watch(...args) {
      if (isAway()) throw new Error('the connection is refused')
      yield* api.watch(...args)
    },
  }
}
