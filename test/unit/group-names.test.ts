/** Two groups cannot look alike: a new name is written in usual letters (NFKC). */
import { expect, it } from 'vitest'
import { putGroup } from '../../controller/engine/commands/cluster-commands.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

const group = (id: string) => ({ id, description: '', nodeIds: [] })

it.each(['\u212Bngström', '\uFB01ne', 'gpu\u2460', 'e\u0301tude'])(
  'a new group is not named %s, which another name looks like',
  (id) => {
    const b = new ClusterBuilder()
    expect(putGroup(b.cluster, group(id), true, b.now)).toMatchObject({
      ok: false,
      refusal: {
        code: 'invalid',
        problems: [{ field: 'id', detail: expect.stringContaining(id.normalize('NFKC')) as string }],
      },
    })
    expect(b.cluster.groups.size).toBe(0)
  },
)

it.each(['\u00C5ngström', 'fine', 'étude', 'grüppe 1'])('a new group may be named %s', (id) => {
  const b = new ClusterBuilder()
  expect(putGroup(b.cluster, group(id), true, b.now).ok).toBe(true)
})

it('a group that has such a name already can be changed', () => {
  const b = new ClusterBuilder()
  b.cluster.groups.set('\uFB01ne', group('\uFB01ne'))
  expect(putGroup(b.cluster, { ...group('\uFB01ne'), description: 'changed' }, false, b.now).ok).toBe(true)
})
