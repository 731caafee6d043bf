/** The class and the group that pods get from the labels of their PriorityClass and their namespace. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { CLASS_LABEL, GROUP_LABEL } from '../../../operator/contract/names.ts'
import { classOfPod } from '../../../operator/contract/pod-class.ts'
import { EVENTS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES } from '../../../operator/ports/kube-api.ts'
import { aPod } from '../../support/kubernetes/objects.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

const inClass =
  (priorityClassName: string) =>
  (pod: Pod): Pod => ({ ...pod, spec: { ...pod.spec, priorityClassName } })
const inGroup =
  (group: string) =>
  (pod: Pod): Pod => ({
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, [GROUP_LABEL]: group } },
  })
const createClass = (name: string, labels: Record<string, string> = {}) =>
  world.api.create(PRIORITY_CLASSES, { metadata: { name, labels }, value: 0 })
const label = (kind: typeof NODES, name: string, labels: Record<string, string | null>) =>
  world.api.patch(kind, { name }, { type: 'merge', body: { metadata: { labels } } })
const priorityOf = (uid = ''): number | undefined =>
  world.operators.at(-1)?.placement?.controller.views.openTask(uid)?.spec.priority
const uidOf = async (name: string) => (await world.pod(name)).metadata.uid
const bound = (name: string, namespace = 'default'): Promise<Pod> =>
  vi.waitFor(async () => {
    const pod = (await world.api.get(PODS, { namespace, name })) as unknown as Pod
    if (pod.spec.nodeName === undefined) throw new Error(`${name} is not bound: ${world.notes.join('\n')}`)
    return pod
  }, WAIT)
const becomes = async (name: string, priority: number): Promise<void> => {
  const uid = await uidOf(name)
  await vi.waitFor(() => expect(priorityOf(uid)).toBe(priority), WAIT)
}

describe('The class of a pod', () => {
  it.each([
    [undefined, undefined, 2],
    ['headroom-p0', undefined, 0],
    ['headroom-p4', undefined, 4],
    ['headroom-p5', undefined, 2],
    ['high', undefined, 2],
    ['high', 'P0', 0],
    ['high', 'P4', 4],
    ['high', 'P5', 2],
    ['high', 'p0', 2],
    ['high', '', 2],
    ['headroom-p1', 'P3', 3],
    ['headroom-p1', '1', 1],
  ])('with the PriorityClass %s and its label %s is P%i', (name, value, priority) => {
    const pod = name === undefined ? aPod() : inClass(name)(aPod())
    expect(classOfPod(pod, { labels: value === undefined ? {} : { [CLASS_LABEL]: value } })).toBe(priority)
    if (value === undefined) expect(classOfPod(pod, null)).toBe(priority)
  })

  it('comes from the label of its PriorityClass, and decides which pod is next', async () => {
    await createClass('urgent', { [CLASS_LABEL]: 'P0' })
    await world.addNode('a', 24 * GIB)
    world.start()
    await world.addPod('first', '20Gi')
    await bound('first')
    await world.addPod('plain', '20Gi')
    await becomes('plain', 2)
    await world.addPod('later', '20Gi', inClass('urgent'))
    await becomes('later', 0)
    await world.finish('first')
    await bound('later')
    expect((await world.pod('plain')).spec.nodeName).toBeUndefined()
  })

  it('follows a label that changes, for pods that wait and for pods that run', async () => {
    await createClass('team')
    await world.addNode('a', 24 * GIB)
    world.start()
    await world.addPod('runs', '20Gi', inClass('team'))
    await bound('runs')
    await world.addPod('waits', '20Gi', inClass('team'))
    await world.addPod('other', '20Gi')
    await becomes('waits', 2)
    await label(PRIORITY_CLASSES, 'team', { [CLASS_LABEL]: 'P4' })
    await becomes('waits', 4)
    await becomes('runs', 4)
    await becomes('other', 2)
    await label(PRIORITY_CLASSES, 'team', { [CLASS_LABEL]: null })
    await becomes('runs', 2)
  })

  it('ignores a label that is not a class, and one event of the PriorityClass says so', async () => {
    const { metadata } = await createClass('team', { [CLASS_LABEL]: 'high' })
    await world.addNode('a', 24 * GIB)
    world.start()
    await world.addPod('first', '20Gi', inClass('team'))
    await bound('first')
    await becomes('first', 2)
    const events = async () =>
      (await world.api.list(EVENTS)).items.filter(({ reason }) => reason === 'InvalidClass')
    await vi.waitFor(async () => expect(await events()).not.toEqual([]), WAIT)
    await label(PRIORITY_CLASSES, 'team', { [CLASS_LABEL]: 'P1' })
    await becomes('first', 1)
    expect(await events()).toMatchObject([
      {
        type: 'Warning',
        note: 'metadata.labels[headroom.dev/class]: must be P0, P1, P2, P3 or P4, not "high". It is ignored.',
        regarding: { kind: 'PriorityClass', name: 'team', uid: metadata.uid },
      },
    ])
  })
})

describe('The group of a pod', () => {
  it('comes from the label of its namespace, unless its own label names one', async () => {
    for (const name of ['common', 'team', 'own']) await world.addNode(name, 24 * GIB)
    await label(NODES, 'team', { [GROUP_LABEL]: 'team' })
    await label(NODES, 'own', { [GROUP_LABEL]: 'own' })
    await label(NAMESPACES, 'default', { [GROUP_LABEL]: 'team' })
    world.start()
    await world.addPod('inherits', '8Gi')
    await world.addPod('names', '8Gi', inGroup('own'))
    expect((await bound('inherits')).spec.nodeName).toBe('team')
    expect((await bound('names')).spec.nodeName).toBe('own')
  })

  it('follows labels of the namespace and of the pod that change while it waits', async () => {
    await world.addNode('team', 24 * GIB)
    await world.addNode('other', 24 * GIB)
    await label(NODES, 'team', { [GROUP_LABEL]: 'team' })
    await label(NODES, 'other', { [GROUP_LABEL]: 'other' })
    const operator = world.start()
    await world.addPod('first', '8Gi')
    await world.addPod('second', '8Gi')
    await becomes('second', 2)
    await label(NAMESPACES, 'default', { [GROUP_LABEL]: 'team' })
    expect((await bound('first')).spec.nodeName).toBe('team')
    expect((await bound('second')).spec.nodeName).toBe('team')
    await label(NAMESPACES, 'default', { [GROUP_LABEL]: null })
    await world.addPod('third', '8Gi')
    await becomes('third', 2)
    const body = { metadata: { labels: { [GROUP_LABEL]: 'other' } } }
    await world.api.patch(PODS, { namespace: 'default', name: 'third' }, { type: 'merge', body })
    expect((await bound('third')).spec.nodeName).toBe('other')
    for (const name of ['first', 'second', 'third']) await world.finish(name)
    await vi.waitFor(
      () => expect([...(operator.placement?.controller.views.groups() ?? [])]).toEqual([]),
      WAIT,
    )
  })

  it('is waited for if the operator sees the pod before its namespace', async () => {
    await world.addNode('common', 24 * GIB)
    await world.addNode('team', 24 * GIB)
    await label(NODES, 'team', { [GROUP_LABEL]: 'team' })
    world.start()
    await world.addPod('early', '8Gi', (pod) => ({ ...pod, metadata: { ...pod.metadata, namespace: 'new' } }))
    // Its turn has passed when a pod that was created after it is bound.
    await world.addPod('later', '8Gi')
    await bound('later')
    await world.api.create(NAMESPACES, { metadata: { name: 'new', labels: { [GROUP_LABEL]: 'team' } } })
    expect((await bound('early', 'new')).spec.nodeName).toBe('team')
  })
})
