/** Changes of one GPUNode that arrive together. */
import { expect, it } from 'vitest'
import { withAddedClaim } from '../../../operator/placing/claims.ts'
import { NodeBook } from '../../../operator/placing/node-book.ts'
import { GPU_NODE, type GPUNodeStatus } from '../../../operator/contract/policies.ts'
import { ownResource } from '../../../operator/ports/kube-api.ts'
import { memoryApi } from '../../support/kubernetes/memory-world.ts'

const KIND = ownResource(GPU_NODE)
const claim = (podUid: string) => ({
  ...{ podUid, podNamespace: 'default', podName: podUid, gpuUuids: ['G'], vramMib: 1, swappable: true },
})

it('Changes that arrive during a write are stored together; a refused one leaves the others', async () => {
  const api = memoryApi()
  const object = await api.create(KIND, { metadata: { name: 'a' } })
  const book = new NodeBook(api, 'a', object)
  const add = (uid: string) => book.change((status) => withAddedClaim(status, claim(uid)))
  const first = add('0')
  const others = ['1', '2', '3'].map(add)
  const refused = book.change(() => 'no VRAM')
  expect(await Promise.all([first, ...others, refused])).toEqual([null, null, null, null, 'no VRAM'])
  const stored = await api.get(KIND, { name: 'a' })
  const { claims = [] } = stored['status'] as GPUNodeStatus
  expect(claims.map(({ podUid }) => podUid)).toEqual(['0', '1', '2', '3'])
  const versions = [stored, object].map(({ metadata }) => Number(metadata.resourceVersion))
  expect(versions[0]! - versions[1]!).toBeLessThanOrEqual(2)
})

it('Changes are made again on the stored version when another writer was faster', async () => {
  const api = memoryApi()
  const object = await api.create(KIND, { metadata: { name: 'a' } })
  const book = new NodeBook(api, 'a', object)
  const other = { claims: [claim('other')] }
  await api.replace(KIND, { ...object, status: other }, { subresource: 'status' })
  await Promise.all(['1', '2'].map((uid) => book.change((status) => withAddedClaim(status, claim(uid)))))
  const { claims = [] } = (await api.get(KIND, { name: 'a' }))['status'] as GPUNodeStatus
  expect(claims.map(({ podUid }) => podUid)).toEqual(['other', '1', '2'])
})

it('A GPUNode that gets a claim meanwhile is not deleted', async () => {
  const api = memoryApi()
  const object = await api.create(KIND, { metadata: { name: 'a' } })
  const book = new NodeBook(api, 'a', object)
  await api.replace(KIND, { ...object, status: { claims: [claim('other')] } }, { subresource: 'status' })
  await book.removeWithoutClaims()
  expect((await api.get(KIND, { name: 'a' }))['status']).toMatchObject({ claims: [{ podUid: 'other' }] })
  await book.reread()
  await book.removeWithoutClaims()
  await book.change(() => ({ claims: [] }))
  await book.removeWithoutClaims()
  await expect(api.get(KIND, { name: 'a' })).rejects.toMatchObject({ code: 404 })
})
