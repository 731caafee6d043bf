import { describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { clusterScenario, type PlanOptions } from '../../../operator/plan/cluster-scenario.ts'
import { planNodes } from '../../../operator/plan/plan-nodes.ts'
import { planPods } from '../../../operator/plan/plan-pods.ts'
import { loadScenario } from '../../../simulator/scenario/load.ts'

const OPTIONS: PlanOptions = { vramByModel: new Map(), podVramMib: null, activity: 'serving', until: '2h' }

function aNode(name: string, labels: object, offered = '2') {
  return { kind: 'Node', metadata: { name, labels }, status: { capacity: { 'nvidia.com/gpu': offered } } }
}
const A10 = { 'nvidia.com/gpu.count': '2', 'nvidia.com/gpu.memory': '24576', 'nvidia.com/gpu.product': 'A10' }
const NODES = planNodes([aNode('gpu-1', A10)], new Map()).nodes

interface PodParts {
  readonly annotations?: object
  readonly limits?: object
  readonly phase?: string
  readonly priority?: number
  readonly priorityClassName?: string
  readonly labels?: object
  readonly created?: string
  readonly nodeName?: string
}

function aPod(name: string, parts: PodParts = {}) {
  const { annotations = {}, limits = { 'nvidia.com/gpu': '1' }, phase = 'Running', ...more } = parts
  return {
    kind: 'Pod',
    metadata: {
      ...{ name, namespace: 'ml', uid: name, annotations, labels: more.labels },
      creationTimestamp: more.created ?? '2026-11-26T10:00:00Z',
    },
    spec: {
      ...{ containers: [{ resources: { limits } }], priority: more.priority, nodeName: more.nodeName },
      ...{ priorityClassName: more.priorityClassName },
    },
    status: { phase },
  }
}
const podsOf = (...objects: readonly object[]) => planPods(objects, NODES, null)

describe('Nodes', () => {
  it('Labels of GPU feature discovery say how many GPUs of which VRAM a node has', () => {
    const plain = { kind: 'Node', metadata: { name: 'cpu' }, status: { capacity: { cpu: '4' } } }
    expect(planNodes([aNode('gpu-2', A10), plain, aNode('gpu-1', A10, '16')], new Map())).toEqual({
      nodes: ['gpu-1', 'gpu-2'].map((name) => ({
        name,
        model: 'A10',
        gpus: 2,
        vramMib: 24_576,
        group: null,
      })),
      notes: [],
    })
  })

  it('GPUs that are shared by time-slicing are counted once', () => {
    const labels = { 'nvidia.com/gpu.replicas': '4', 'nvidia.com/gpu.memory': '24576' }
    expect(planNodes([aNode('gpu-1', labels, '8')], new Map()).nodes).toMatchObject([{ gpus: 2 }])
  })

  it('A node whose VRAM is not known is left out with a note, unless its model is given', () => {
    const node = aNode('gpu-1', { 'nvidia.com/gpu.product': 'X1' })
    expect(planNodes([node], new Map())).toEqual({
      nodes: [],
      notes: ['Left out: node gpu-1: it has no label nvidia.com/gpu.memory; add --vram-map X1=MIB.'],
    })
    expect(planNodes([node], new Map([['X1', 8192]])).nodes).toMatchObject([{ vramMib: 8192 }])
  })
})

describe('Pods', () => {
  it.each([
    ['whole GPUs', { limits: { 'nvidia.com/gpu': '2' } }, { gpus: 2, vramMib: null }],
    [
      'Headroom',
      { annotations: { 'headroom.dev/pod-vram': '1.5Gi', 'headroom.dev/gpu-count': '2' }, limits: {} },
      { gpus: 2, vramMib: 1536, from: 'headroom.dev/pod-vram' },
    ],
    ['HAMi', { limits: { 'nvidia.com/gpu': '1', 'nvidia.com/gpumem': '3000' } }, { gpus: 1, vramMib: 3000 }],
    ['KAI by memory', { annotations: { 'gpu-memory': '2000' }, limits: {} }, { gpus: 1, vramMib: 2000 }],
    ['KAI by fraction', { annotations: { 'gpu-fraction': '0.25' }, limits: {} }, { gpus: 1, vramMib: 6144 }],
  ])('What a pod needs is read as %s says it', (_who, parts, expected) => {
    expect(podsOf(aPod('a', parts)).pods).toMatchObject([expected])
  })

  it('Pods that have ended, or use no GPU, are left out', () => {
    const { pods } = podsOf(
      aPod('done', { phase: 'Succeeded' }),
      aPod('failed', { phase: 'Failed' }),
      aPod('cpu', { limits: { cpu: '1' } }),
      aPod('kept'),
    )
    expect(pods.map(({ name }) => name)).toEqual(['kept'])
  })

  it('Running pods come first, then by priority and creation', () => {
    const { pods } = podsOf(
      aPod('late', { phase: 'Pending', created: '2026-11-26T12:00:00Z' }),
      aPod('early', { phase: 'Pending', created: '2026-11-26T11:00:00Z' }),
      aPod('high', { phase: 'Pending', created: '2026-11-26T13:00:00Z', priority: 1000 }),
      aPod('runs', { created: '2026-11-26T14:00:00Z', priority: -5 }),
    )
    expect(pods.map(({ name, priority }) => `${name} P${priority}`)).toEqual([
      'runs P3',
      'high P1',
      'early P2',
      'late P2',
    ])
  })

  it('The label of a PriorityClass is the class of its pods, if the list has it', () => {
    const aClass = (name: string, labels?: object) => ({ kind: 'PriorityClass', metadata: { name, labels } })
    const pods = ['urgent', 'bad', 'headroom-p4', 'unknown'].map((priorityClassName) =>
      aPod(priorityClassName, { priority: 1000, priorityClassName }),
    )
    expect(podsOf(...pods).pods.map(({ priority }) => priority)).toEqual([1, 1, 1, 1])
    const classes = [
      aClass('urgent', { 'headroom.dev/class': 'P0' }),
      aClass('bad', { 'headroom.dev/class': 'P9' }),
      aClass('headroom-p4'),
    ]
    const { pods: planned, notes } = podsOf(...pods, ...classes)
    expect(Object.fromEntries(planned.map(({ name, priority }) => [name, priority]))).toEqual({
      ...{ urgent: 0, bad: 1, 'headroom-p4': 4, unknown: 1 },
    })
    expect(notes[0]).toBe(
      'Ignored: PriorityClass bad: metadata.labels[headroom.dev/class]: must be P0, P1, P2, P3 or P4, ' +
        'not "P9".',
    )
  })

  it('Pods without an amount take whole GPUs, or what is assumed; both are told', () => {
    expect(podsOf(aPod('a')).notes).toEqual([expect.stringMatching(/^1 of 1 pods do not .* --pod-vram/)])
    const assumed = planPods([aPod('a')], NODES, 8192)
    expect(assumed.pods).toMatchObject([{ vramMib: 8192 }])
    expect(assumed.notes).toEqual(['Assumed: 1 pods need 8192 MiB on each GPU (--pod-vram).'])
  })

  it('A pod larger than any GPU is told, and one beyond any server is left out', () => {
    const large = (vram: string) => ({ annotations: { 'headroom.dev/pod-vram': vram }, limits: {} })
    expect(podsOf(aPod('a', large('25Gi'))).notes).toEqual([
      'Pod ml/a needs 25600 MiB, more than any GPU has: it is never placed.',
    ])
    expect(podsOf(aPod('b', large('17Ti')))).toEqual({
      pods: [],
      notes: [expect.stringMatching('^Left out: pod ml/b: ')],
    })
  })

  it.each([null, 5, 'text', [], {}, { kind: 'Pod' }, { kind: 'Pod', metadata: 1, spec: { containers: {} } }])(
    'An object of another form is not a pod: %j',
    (object) => {
      expect(planPods([object], NODES, null).pods).toEqual([])
      expect(planNodes([object], new Map()).nodes).toEqual([])
    },
  )
})

describe('The scenario', () => {
  it('Is valid, and has a task for each pod on the fleet of the nodes', () => {
    const noswap = { 'headroom.dev/pod-vram': '8Gi', 'headroom.dev/swap-from-vram': 'false' }
    const objects = [aNode('gpu-1', A10), aPod('whole'), aPod('own', { annotations: noswap, limits: {} })]
    const text = stringify(clusterScenario(objects, OPTIONS).scenario)
    expect(loadScenario({ text, baseDir: '.' }).scenario.name).toBe('kubernetes-whatif')
    const { scenario: document } = clusterScenario(objects, OPTIONS) as {
      readonly scenario: { readonly workload: readonly { readonly task: object }[] }
    }
    expect(document.workload.map(({ task }) => task)).toMatchObject([
      { name: 'ml/own', vram_mib: 8192, noswap: 1, owner: 'ml', run: '2h', activity: 'serving' },
      { name: 'ml/whole', gpu_mode: 'exclusive', noswap: 0 },
    ])
  })

  it('Has the groups of nodes, namespaces and pods, if the list has namespaces', () => {
    const group = (name: string) => ({ 'headroom.dev/group': name })
    const objects = [
      aNode('gpu-1', { ...A10, ...group('team') }),
      aNode('gpu-2', A10),
      aPod('inherits'),
      aPod('names', { labels: group('else') }),
      aPod('none', { labels: group('') }),
    ]
    interface Document {
      readonly fleet: readonly { readonly groups?: readonly string[] }[]
      readonly workload: readonly { readonly task: { readonly name: string; readonly groups?: string[] } }[]
    }
    const groupsOf = (...more: readonly object[]) => {
      const { scenario, notes } = clusterScenario([...objects, ...more], OPTIONS)
      expect(() => loadScenario({ text: stringify(scenario), baseDir: '.' })).not.toThrow()
      const { fleet, workload } = scenario as Document
      const tasks = workload.map(({ task }) => [task.name, task.groups])
      return { fleet: fleet.map(({ groups }) => groups), tasks: Object.fromEntries(tasks) as object, notes }
    }
    expect(groupsOf()).toMatchObject({ fleet: [undefined, undefined], tasks: { 'ml/names': undefined } })
    const found = groupsOf({ kind: 'Namespace', metadata: { name: 'ml', labels: group('team') } })
    expect(found.fleet).toEqual([['team'], undefined])
    expect(found.tasks).toEqual({ 'ml/inherits': ['team'], 'ml/names': ['else'], 'ml/none': undefined })
    expect(found.notes).toContain('Pod ml/names: no node has its group else: it is never placed.')
  })

  it('Without nodes or without pods the message says which command is missing', () => {
    expect(() => clusterScenario([aPod('a')], OPTIONS)).toThrow('kubectl get nodes -o json')
    expect(() => clusterScenario([aNode('gpu-1', A10)], OPTIONS)).toThrow('kubectl get pods -A -o json')
  })
})
