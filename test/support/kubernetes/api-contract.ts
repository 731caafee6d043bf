/**
 * The contract of every API server of Kubernetes: test/unit/kubernetes runs it in memory, test/kubernetes
 * with the real etcd and kube-apiserver.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../../../operator/contract/policies.ts'
import {
  CONFIG_MAPS,
  type KubeApi,
  KubeError,
  type KubeObject,
  NODES,
  ownResource,
  PODS,
  type WatchEvent,
} from '../../../operator/ports/kube-api.ts'

export interface ApiWorld {
  readonly api: KubeApi
  /** Makes the oldest versions too old for a watch. */
  compact(): void
  end(): Promise<void>
}

const CLUSTER_POLICIES = ownResource(CLUSTER_GPU_POLICY)
const NODE_POLICIES = ownResource(VENDOR_NODE_POLICY)
const GPU_NODES = ownResource(GPU_NODE)
const namespace = 'default'

export function apiContract(name: string, open: () => Promise<ApiWorld>): void {
  describe(name, () => {
    let world: ApiWorld
    let api: KubeApi
    let serial = 0
    let id = ''

    beforeAll(async () => {
      world = await open()
      api = world.api
    })
    afterAll(() => world.end())
    /** Objects of one test have names and a label of their own. */
    beforeEach(() => {
      serial += 1
      id = `t${serial}`
    })

    const aMap = (name: string, more: Partial<KubeObject> = {}): KubeObject => ({
      metadata: { name: `${id}-${name}`, namespace, labels: { test: id } },
      data: { key: 'value' },
      ...more,
    })
    const key = (name: string) => ({ namespace, name: `${id}-${name}` })
    const selector = () => ({ namespace, labelSelector: `test=${id}` })
    const refusal = (call: Promise<unknown>): Promise<KubeError> =>
      call.then(
        () => expect.fail('it was not refused'),
        (error: unknown) => {
          if (error instanceof KubeError) return error
          throw error
        },
      )

    it('A new object gets an identity, a version and a time, and is found', async () => {
      const made = await api.create(CONFIG_MAPS, aMap('a'))
      expect(made.metadata).toMatchObject({
        name: `${id}-a`,
        uid: expect.stringMatching(/^[0-9a-f-]{36}$/),
        resourceVersion: expect.stringMatching(/^\d+$/),
        creationTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
      })
      expect(await api.get(CONFIG_MAPS, key('a'))).toEqual(made)
      expect(made).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { key: 'value' } })
    })

    it('A name that exists is refused with 409, one that does not exist with 404', async () => {
      await api.create(CONFIG_MAPS, aMap('a'))
      expect(await refusal(api.create(CONFIG_MAPS, aMap('a')))).toMatchObject({
        code: 409,
        reason: 'AlreadyExists',
      })
      const absent = [
        () => api.get(CONFIG_MAPS, key('b')),
        () => api.patch(CONFIG_MAPS, key('b'), { type: 'merge', body: { data: { a: 'b' } } }),
        () => api.replace(CONFIG_MAPS, aMap('b')),
        () => api.delete(CONFIG_MAPS, key('b')),
      ]
      for (const call of absent)
        expect(await refusal(call())).toMatchObject({ code: 404, reason: 'NotFound' })
    })

    it('generateName makes names that differ', async () => {
      const object = { metadata: { generateName: `${id}-g-`, namespace }, data: {} }
      const made = [await api.create(CONFIG_MAPS, object), await api.create(CONFIG_MAPS, object)]
      const names = made.map(({ metadata }) => metadata.name)
      expect(new Set(names).size).toBe(2)
      for (const each of names) expect(each).toMatch(new RegExp(`^${id}-g-[a-z0-9]{5}$`))
    })

    it('A list has pages of one version, in the order of names', async () => {
      for (const name of ['c', 'a', 'e', 'b', 'd']) await api.create(CONFIG_MAPS, aMap(name))
      const first = await api.list(CONFIG_MAPS, { ...selector(), limit: 2 })
      const second = await api.list(CONFIG_MAPS, {
        ...selector(),
        limit: 2,
        continueFrom: first.continueFrom!,
      })
      const third = await api.list(CONFIG_MAPS, {
        ...selector(),
        limit: 2,
        continueFrom: second.continueFrom!,
      })
      const pages = [first, second, third]
      expect(pages.map(({ items }) => items.map(({ metadata }) => metadata.name?.at(-1)))).toEqual([
        ['a', 'b'],
        ['c', 'd'],
        ['e'],
      ])
      expect(third.continueFrom).toBeNull()
      expect(new Set(pages.map(({ resourceVersion }) => resourceVersion)).size).toBe(1)
      expect(first.items[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' })
    })

    it.each([
      ['kind=x', ['a']],
      ['kind!=x', ['b', 'c']],
      ['kind in (x,y)', ['a', 'b']],
      ['kind notin (x,y)', ['c']],
      ['kind', ['a', 'b']],
      ['!kind', ['c']],
    ])('The selector %s chooses by labels', async (text, expected) => {
      for (const [name, kind] of [
        ['a', 'x'],
        ['b', 'y'],
        ['c', null],
      ] as const)
        await api.create(CONFIG_MAPS, {
          metadata: { ...key(name), labels: { test: id, ...(kind === null ? {} : { kind }) } },
        })
      const { items } = await api.list(CONFIG_MAPS, { namespace, labelSelector: `test=${id},${text}` })
      expect(items.map(({ metadata }) => metadata.name?.at(-1))).toEqual(expected)
    })

    it('A replacement from an old version is refused with 409 and changes nothing', async () => {
      const first = await api.create(CONFIG_MAPS, aMap('a'))
      const second = await api.replace(CONFIG_MAPS, { ...first, data: { key: 'second' } })
      expect(second.metadata.resourceVersion).not.toBe(first.metadata.resourceVersion)
      expect(await refusal(api.replace(CONFIG_MAPS, { ...first, data: { key: 'third' } }))).toMatchObject({
        code: 409,
        reason: 'Conflict',
      })
      expect(await api.get(CONFIG_MAPS, key('a'))).toEqual(second)
    })

    it('A replacement without a change keeps the version', async () => {
      const first = await api.create(CONFIG_MAPS, aMap('a'))
      const again = await api.replace(CONFIG_MAPS, first)
      expect(again.metadata.resourceVersion).toBe(first.metadata.resourceVersion)
    })

    it('A merge patch changes, adds and removes fields, and may demand a version', async () => {
      const first = await api.create(CONFIG_MAPS, aMap('a', { data: { stays: '1', goes: '2' } }))
      const body = { metadata: { annotations: { note: 'x' } }, data: { goes: null, comes: '3' } }
      const patched = await api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body })
      expect(patched).toMatchObject({ metadata: { annotations: { note: 'x' } } })
      expect(patched['data']).toEqual({ stays: '1', comes: '3' })
      const { resourceVersion } = first.metadata
      const stale = { metadata: { resourceVersion }, data: { comes: '4' } }
      expect(await refusal(api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: stale }))).toMatchObject({
        code: 409,
      })
      expect((await api.get(CONFIG_MAPS, key('a')))['data']).toEqual({ stays: '1', comes: '3' })
    })

    it('A JSON patch applies in whole or not at all', async () => {
      const made = aMap('a', { data: { a: '1' } })
      const annotations = { 'example.com/b': '2', kept: '3' }
      await api.create(CONFIG_MAPS, { ...made, metadata: { ...made.metadata, annotations } })
      const patched = await api.patch(CONFIG_MAPS, key('a'), {
        type: 'json',
        body: [
          { op: 'test', path: '/data/a', value: '1' },
          { op: 'replace', path: '/data/a', value: '3' },
          { op: 'remove', path: '/metadata/annotations/example.com~1b' },
          { op: 'add', path: '/data/d', value: '4' },
        ],
      })
      expect(patched['data']).toEqual({ a: '3', d: '4' })
      expect(patched.metadata.annotations).toEqual({ kept: '3' })
      const fails = api.patch(CONFIG_MAPS, key('a'), {
        type: 'json',
        body: [
          { op: 'replace', path: '/data/d', value: '5' },
          { op: 'test', path: '/data/a', value: '1' },
        ],
      })
      expect(await refusal(fails)).toMatchObject({ code: 422 })
      expect((await api.get(CONFIG_MAPS, key('a')))['data']).toEqual({ a: '3', d: '4' })
    })

    it('The status is written through its subresource; a new spec raises the generation', async () => {
      const metadata = { name: `${id}-node` }
      const made = await api.create(NODE_POLICIES, {
        metadata,
        spec: { vramOvercommitPercent: 20 },
        status: { observedGeneration: 7 },
      })
      expect(made['status']).toBeUndefined()
      expect(made.metadata.generation).toBe(1)
      const withStatus = await api.replace(
        NODE_POLICIES,
        { ...made, spec: { vramOvercommitPercent: 99 }, status: { observedGeneration: 1 } },
        { subresource: 'status' },
      )
      expect(withStatus).toMatchObject({
        metadata: { generation: 1 },
        spec: { vramOvercommitPercent: 20 },
        status: { observedGeneration: 1 },
      })
      const changed = await api.patch(NODE_POLICIES, metadata, {
        type: 'merge',
        body: { spec: { vramOvercommitPercent: 50 }, status: { observedGeneration: 2 } },
      })
      expect(changed).toMatchObject({
        metadata: { generation: 2 },
        spec: { vramOvercommitPercent: 50 },
        status: { observedGeneration: 1 },
      })
    })

    it.each([1001, -1, 1.5, '20'])('The percentage %j is refused with its path', async (percent) => {
      const object = { metadata: { name: `${id}-p` }, spec: { vramOvercommitPercent: percent } }
      const refused = await refusal(api.create(NODE_POLICIES, object))
      expect(refused).toMatchObject({ code: 422, reason: 'Invalid' })
      expect(refused.faults.map(({ path }) => path)).toContain('spec.vramOvercommitPercent')
      expect(refused.message).toContain('spec.vramOvercommitPercent')
    })

    it('The percentages 0 and 1000 are accepted, and unknown fields are dropped', async () => {
      for (const percent of [0, 1000]) {
        const spec = { vramOvercommitPercent: percent, unknown: 1 }
        const made = await api.create(NODE_POLICIES, { metadata: { name: `${id}-p${percent}` }, spec })
        expect(made['spec']).toEqual({ vramOvercommitPercent: percent })
      }
    })

    it('Only a ClusterGPUPolicy with the name default is accepted', async () => {
      const spec = { defaultVramOvercommitPercent: 20 }
      expect(await refusal(api.create(CLUSTER_POLICIES, { metadata: { name: id }, spec }))).toMatchObject({
        code: 422,
        message: expect.stringContaining('the only ClusterGPUPolicy has the name default'),
      })
      await api.create(CLUSTER_POLICIES, { metadata: { name: 'default' }, spec })
      await api.delete(CLUSTER_POLICIES, { name: 'default' })
    })

    it('The node of a VendorNodePolicy cannot be changed', async () => {
      const metadata = { name: `${id}-fixed` }
      await api.create(NODE_POLICIES, { metadata, spec: { nodeName: 'gpu-1' } })
      for (const nodeName of ['gpu-2', null]) {
        const patch = { type: 'merge', body: { spec: { nodeName } } } as const
        const refused = await refusal(api.patch(NODE_POLICIES, metadata, patch))
        expect(refused).toMatchObject({ code: 422 })
        expect(refused.faults.map(({ path }) => path)).toEqual(['spec.nodeName'])
      }
    })

    it('A custom resource is replaced only from a known version', async () => {
      const object = { metadata: { name: `${id}-v` }, spec: {} }
      await api.create(NODE_POLICIES, object)
      const refused = await refusal(api.replace(NODE_POLICIES, object))
      expect(refused.faults.map(({ path }) => path)).toEqual(['metadata.resourceVersion'])
    })

    it('A claim in the status of a GPUNode is written once: the second writer gets 409', async () => {
      const made = await api.create(GPU_NODES, { metadata: { name: `${id}-gpu` } })
      const claimed = (podUid: string): KubeObject => ({
        ...made,
        status: {
          claims: [
            { podUid, podNamespace: 'ml', podName: 'p', gpuUuids: ['GPU-0'], vramMib: 8192, swappable: true },
          ],
        },
      })
      await api.replace(GPU_NODES, claimed('one'), { subresource: 'status' })
      expect(await refusal(api.replace(GPU_NODES, claimed('two'), { subresource: 'status' }))).toMatchObject({
        code: 409,
        reason: 'Conflict',
      })
      expect(await api.get(GPU_NODES, { name: `${id}-gpu` })).toMatchObject({
        status: { claims: [{ podUid: 'one' }] },
      })
    })

    it('A watch tells the changes after a version, in their order, and ends without an error', async () => {
      const { resourceVersion } = await api.list(CONFIG_MAPS, selector())
      await api.create(CONFIG_MAPS, aMap('a'))
      const stop = new AbortController()
      const seen = collect(api, { ...selector(), resourceVersion, timeoutMs: 60_000, signal: stop.signal })
      await expect.poll(() => seen.told()).toEqual(['ADDED a'])
      await api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: { data: { key: 'x' } } })
      await api.create(CONFIG_MAPS, aMap('b'))
      await api.delete(CONFIG_MAPS, key('a'))
      await expect.poll(() => seen.told()).toEqual(['ADDED a', 'MODIFIED a', 'ADDED b', 'DELETED a'])
      stop.abort()
      await seen.ended
      const versions = seen.events.map(({ object }) => Number(object.metadata.resourceVersion))
      expect(versions).toEqual(versions.toSorted((a, b) => a - b))
    })

    it('For a watch with a selector an object is added and deleted when its labels change', async () => {
      await api.create(CONFIG_MAPS, { metadata: { ...key('a'), labels: { other: id } } })
      const { resourceVersion } = await api.list(CONFIG_MAPS, selector())
      const stop = new AbortController()
      const seen = collect(api, { ...selector(), resourceVersion, timeoutMs: 60_000, signal: stop.signal })
      const label = (test: string | null) =>
        api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: { metadata: { labels: { test } } } })
      await label(id)
      await label(null)
      await expect.poll(() => seen.told()).toEqual(['ADDED a', 'DELETED a'])
      stop.abort()
      await seen.ended
    })

    it('A watch from a version that is too old is refused with 410', async () => {
      await api.create(NODE_POLICIES, { metadata: { name: `${id}-old` }, spec: {} })
      world.compact()
      const { signal } = new AbortController()
      const watch = api.watch(NODE_POLICIES, { resourceVersion: '1', timeoutMs: 10_000, signal })
      expect(await refusal(watch[Symbol.asyncIterator]().next())).toMatchObject({ code: 410 })
    })

    it('Finalizers keep an object that is being deleted', async () => {
      const finalizers = ['headroom.dev/test']
      const map = aMap('a')
      await api.create(CONFIG_MAPS, { ...map, metadata: { ...map.metadata, finalizers } })
      await api.delete(CONFIG_MAPS, key('a'))
      const { metadata } = await api.get(CONFIG_MAPS, key('a'))
      expect(metadata.deletionTimestamp).toMatch(/Z$/)
      await api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body: { metadata: { finalizers: null } } })
      expect(await refusal(api.get(CONFIG_MAPS, key('a')))).toMatchObject({ code: 404 })
    })

    it('A deletion of another object of the same name is refused with 409', async () => {
      const { metadata } = await api.create(CONFIG_MAPS, aMap('a'))
      const other = '00000000-0000-4000-8000-00000000ffff'
      expect(await refusal(api.delete(CONFIG_MAPS, key('a'), { uid: other }))).toMatchObject({ code: 409 })
      await api.delete(CONFIG_MAPS, key('a'), { uid: metadata.uid! })
      expect(await refusal(api.get(CONFIG_MAPS, key('a')))).toMatchObject({ code: 404 })
    })

    it('A patch of another object of the same name is refused', async () => {
      await api.create(CONFIG_MAPS, aMap('a'))
      const body = { metadata: { uid: '00000000-0000-4000-8000-00000000ffff' }, data: { x: 'y' } }
      const { code, faults } = await refusal(api.patch(CONFIG_MAPS, key('a'), { type: 'merge', body }))
      expect([code, faults[0]?.path]).toEqual([422, 'metadata.uid'])
    })

    it('A dry run checks and stores nothing', async () => {
      const spec = { vramOvercommitPercent: 20 }
      const object = { metadata: { name: `${id}-dry` }, spec }
      expect((await api.create(NODE_POLICIES, object, { isDryRun: true }))['spec']).toEqual(spec)
      expect(await refusal(api.get(NODE_POLICIES, object.metadata))).toMatchObject({ code: 404 })
      const bad = { ...object, spec: { vramOvercommitPercent: 1001 } }
      expect(await refusal(api.create(NODE_POLICIES, bad, { isDryRun: true }))).toMatchObject({ code: 422 })
    })

    it('A binding writes node and annotations at once, and a gated or bound pod is refused', async () => {
      await api.create(NODES, { metadata: { name: `${id}-gpu` } })
      await api.create(PODS, {
        metadata: key('pod'),
        spec: {
          containers: [{ name: 'main', image: 'registry.example/x:1' }],
          schedulingGates: [{ name: 'headroom.dev/vram' }],
        },
      })
      const binding = {
        metadata: { ...key('pod'), annotations: { 'headroom.dev/gpu-uuids': 'GPU-0' } },
        target: { kind: 'Node', name: `${id}-gpu` },
      }
      const bind = () => api.create(PODS, binding, { subresource: 'binding' })
      expect(await refusal(bind())).toMatchObject({ code: 409 })
      const ungated = await api.patch(PODS, key('pod'), {
        type: 'json',
        body: [
          { op: 'test', path: '/spec/schedulingGates/0/name', value: 'headroom.dev/vram' },
          { op: 'remove', path: '/spec/schedulingGates/0' },
        ],
      })
      expect(ungated.metadata.annotations?.['headroom.dev/gpu-uuids']).toBeUndefined()
      await bind()
      expect(await api.get(PODS, key('pod'))).toMatchObject({
        metadata: { annotations: { 'headroom.dev/gpu-uuids': 'GPU-0' } },
        spec: { nodeName: `${id}-gpu` },
      })
      expect(await refusal(bind())).toMatchObject({ code: 409 })
    })
  })
}

/** Follows a watch of ConfigMaps until it ends. */
function collect(api: KubeApi, options: Parameters<KubeApi['watch']>[1]) {
  const events: WatchEvent[] = []
  const follow = async (): Promise<void> => {
    for await (const event of api.watch(CONFIG_MAPS, options)) events.push(event)
  }
  return {
    events,
    ended: follow(),
    /** Types with the last letter of the name, without bookmarks. */
    told: () =>
      events
        .filter(({ type }) => type !== 'BOOKMARK')
        .map(({ type, object }) => `${type} ${object.metadata.name?.at(-1)}`),
  }
}
