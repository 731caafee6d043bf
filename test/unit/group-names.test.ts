/** Two groups cannot look alike: a new name must be in normal form NFKC. */
import { expect, it } from 'vitest'
import { putGroup } from '../../controller/engine/inputs/commands/cluster-commands.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'

const group = (id: string) => ({ id, description: '', nodeIds: [] })

it.each(['\u212Bngström', '\uFB01ne', 'gpu\u2460', 'e\u0301tude'])(
  'A new group cannot be named %s, which looks like another name',
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

it.each(['\u00C5ngström', 'fine', 'étude', 'grüppe 1'])('A new group may be named %s', (id) => {
  const b = new ClusterBuilder()
  expect(putGroup(b.cluster, group(id), true, b.now).ok).toBe(true)
})

it('An existing group with such a name can be changed', () => {
  const b = new ClusterBuilder()
  b.cluster.groups.set('\uFB01ne', group('\uFB01ne'))
  expect(putGroup(b.cluster, { ...group('\uFB01ne'), description: 'changed' }, false, b.now).ok).toBe(true)
})
