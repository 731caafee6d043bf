/** Which nodes a pod admits, and which pods share a group of nodes. */
import { expect, it } from 'vitest'
import type { Node, Pod, PodSpec, Taint } from '../../../operator/contract/kubernetes.ts'
import { GROUP_LABEL } from '../../../operator/contract/names.ts'
import { admitsNode } from '../../../operator/placing/admitted-nodes.ts'
import { NodeSets } from '../../../operator/placing/node-sets.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

const node = (labels: Record<string, string> = {}, taints: readonly Taint[] = [], name = 'n'): Node => ({
  metadata: { name, labels },
  spec: { taints },
})
const pod = (spec: Partial<PodSpec>, uid = 'u', group?: string): Pod => {
  const { metadata, ...rest } = aPod()
  const labels = group === undefined ? {} : { [GROUP_LABEL]: group }
  return { ...rest, metadata: { ...metadata, uid, labels }, spec: { ...rest.spec, ...spec } }
}
const affinity = (key: string, operator: string, ...values: readonly string[]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key, operator, values }] }],
      },
    },
  },
})

it.each([
  ['In', ['5', '7'], '7', true],
  ['In', ['5'], '7', false],
  ['In', ['5'], undefined, false],
  ['NotIn', ['5'], '7', true],
  ['NotIn', ['7'], '7', false],
  ['NotIn', ['7'], undefined, true],
  ['Exists', [], '7', true],
  ['Exists', [], undefined, false],
  ['DoesNotExist', [], '7', false],
  ['DoesNotExist', [], undefined, true],
  ['Gt', ['5'], '7', true],
  ['Gt', ['7'], '7', false],
  ['Gt', ['5'], 'seven', false],
  ['Gt', ['5'], undefined, false],
  ['Lt', ['10'], '7', true],
  ['Other', ['7'], '7', false],
] as const)('A required affinity %s %j decides about the label %s', (operator, values, label, expected) => {
  const labels = label === undefined ? {} : { gen: label }
  expect(admitsNode(pod(affinity('gen', operator, ...values)), node(labels))).toBe(expected)
})

it('Terms of an affinity are alternatives, and one without requirements matches nothing', () => {
  const terms = (nodeSelectorTerms: readonly object[]): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    },
  })
  const named = { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }
  expect(admitsNode(pod(terms([{}, named])), node())).toBe(true)
  expect(admitsNode(pod(terms([{}])), node())).toBe(false)
  expect(admitsNode(pod(terms([named])), node({}, [], 'other'))).toBe(false)
})

it.each([
  [{ key: 'k', value: 'v', effect: 'NoSchedule' }, {}, false],
  [{ key: 'k', value: 'v', effect: 'PreferNoSchedule' }, {}, true],
  [{ key: 'k', value: 'v', effect: 'NoExecute' }, { key: 'k', operator: 'Exists' }, true],
  [
    { key: 'k', value: 'v', effect: 'NoExecute' },
    { key: 'k', operator: 'Exists', effect: 'NoSchedule' },
    false,
  ],
  [{ key: 'k', value: 'v', effect: 'NoSchedule' }, { key: 'k', value: 'v' }, true],
  [{ key: 'k', value: 'v', effect: 'NoSchedule' }, { key: 'k', value: 'w' }, false],
  [{ key: 'k', value: 'v', effect: 'NoSchedule' }, { operator: 'Exists' }, true],
] as const)('A taint %j with the toleration %j', (taint, toleration, expected) => {
  const tolerations = Object.keys(toleration).length === 0 ? [] : [toleration]
  expect(admitsNode(pod({ tolerations }), node({}, [taint]))).toBe(expected)
})

it('A cordoned node admits only pods that tolerate it', () => {
  const cordoned: Node = { metadata: { name: 'n' }, spec: { unschedulable: true } }
  const key = 'node.kubernetes.io/unschedulable'
  expect(admitsNode(pod({}), cordoned)).toBe(false)
  expect(admitsNode(pod({ tolerations: [{ key, operator: 'Exists' }] }), cordoned)).toBe(true)
})

it('Nodes of a group run pods of that group only, and those pods run nowhere else', () => {
  const ofTeam = node({ [GROUP_LABEL]: 'team' })
  expect([admitsNode(pod({}), ofTeam), admitsNode(pod({}, 'u', 'team'), ofTeam)]).toEqual([false, true])
  expect(admitsNode(pod({}, 'u', 'team'), node())).toBe(false)
})

it('Pods with the same constraints share a group, which ends with the last of them', () => {
  const sets = new NodeSets()
  const nodes = [node({ zone: 'a' }, [], 'a'), node({ zone: 'b' }, [], 'b')]
  const selecting = (uid: string, zone: string): Pod => pod({ nodeSelector: { zone } }, uid)
  const first = sets.join(selecting('1', 'a'), nodes)
  expect(first).toMatchObject({ isNew: true, set: { nodeNames: ['a'] } })
  expect(sets.join(selecting('2', 'a'), nodes)).toMatchObject({ isNew: false, set: { id: first.set.id } })
  expect(sets.join(selecting('3', 'b'), nodes).set.id).not.toBe(first.set.id)
  expect(sets.update([...nodes, node({ zone: 'a' }, [], 'c')])).toMatchObject([{ nodeNames: ['a', 'c'] }])
  expect([sets.leave('1'), sets.leave('2'), sets.leave('2')]).toEqual([null, first.set.id, null])
})
