/** The API server in memory keeps the contract, and has the faults that tests ask for. */
import { expect, it } from 'vitest'
import { CONFIG_MAPS, KubeError } from '../../../operator/ports/kube-api.ts'
import { apiContract } from '../../support/kubernetes/api-contract.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'

apiContract('The API server in memory', async () => {
  const api = memoryApi()
  return {
    api,
    compact: () => api.compact(),
    end: async () => {},
  }
})

const aMap = (name: string) => ({ metadata: { name, namespace: 'default' }, data: {} })

it('Dropped watches end without an error, and leave no watcher', async () => {
  const api = memoryApi()
  const { signal } = new AbortController()
  const watch = api.watch(CONFIG_MAPS, { resourceVersion: '0', timeoutMs: 60_000, signal })
  const next = watch.next()
  await expect.poll(() => api.watchCount).toBe(1)
  api.dropWatches()
  expect(await next).toEqual({ done: true, value: undefined })
  expect(api.watchCount).toBe(0)
})

it('A bookmark has the current version, also for a watch whose selector matches nothing', async () => {
  const api = memoryApi()
  const { signal } = new AbortController()
  const options = { labelSelector: 'test=none', resourceVersion: '0', timeoutMs: 60_000, signal }
  const next = api.watch(CONFIG_MAPS, options).next()
  await api.create(CONFIG_MAPS, aMap('a'))
  api.sendBookmarks()
  expect((await next).value).toMatchObject({
    type: 'BOOKMARK',
    object: { metadata: { resourceVersion: '1' } },
  })
})

it('A history that is full forgets its oldest events: their watch gets 410', async () => {
  const api = memoryApi(3)
  for (const name of ['a', 'b', 'c', 'd']) await api.create(CONFIG_MAPS, aMap(name))
  const { signal } = new AbortController()
  const from = (resourceVersion: string) =>
    api.watch(CONFIG_MAPS, { resourceVersion, timeoutMs: 60_000, signal }).next()
  await expect(from('0')).rejects.toMatchObject({ code: 410 })
  expect((await from('1')).value).toMatchObject({ object: { metadata: { name: 'b' } } })
})

it('A fault is that of the next request only', async () => {
  const api = memoryApi()
  api.failNext(new KubeError(429, 'TooManyRequests', 'later', { retryAfterMs: 1000 }))
  await expect(api.create(CONFIG_MAPS, aMap('a'))).rejects.toMatchObject({ code: 429, retryAfterMs: 1000 })
  await api.create(CONFIG_MAPS, aMap('a'))
})

it('What is read cannot change what is stored', async () => {
  const api = memoryApi()
  const made = await api.create(CONFIG_MAPS, aMap('a'))
  ;(made['data'] as Record<string, string>)['key'] = 'changed'
  expect((await api.get(CONFIG_MAPS, { namespace: 'default', name: 'a' }))['data']).toEqual({})
})
