/** Features of GPU servers: a task is placed only where every feature that it requires is offered. */
import { describe, expect, it } from 'vitest'
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import { presentNode, readingsOf } from '../../controller/api/nodes/present.ts'
import { createController, type Controller } from '../../controller/controller.ts'
import { DEFAULT_CONFIG } from '../../controller/model/config.ts'
import { missingFeature, requiredFeatures } from '../../controller/policy/placement/feasible.ts'
import { PROTOCOL_VERSION, TASK_DEFAULTS } from '../../protocol/limits.ts'
import type { Hello } from '../../protocol/messages.ts'
import { nodeSubject } from '../../protocol/subjects.ts'
import { memoryLimitMib } from '../../protocol/resource-limits.ts'
import { DEFAULT_RUN_POLICY } from '../../protocol/task.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { runScenario } from '../../simulator/run/run.ts'
import { loadScenario } from '../../simulator/scenario/load.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { ClusterBuilder } from '../support/cluster-builder.ts'
import { HELLO } from '../support/hello.ts'
import { plainBus } from '../support/plain-bus.ts'

const IMAGE = 'registry.example/team/train:v2'
const CONTAINER = { command: ['train'], image: IMAGE }

describe('a task with an image', () => {
  it('waits where no server offers container images, while others run there', () => {
    const b = new ClusterBuilder()
    const old = b.addNode({ id: 'old', gpus: [110] })
    b.addNode({ id: 'other', gpus: [110], features: ['mounts', 'of-a-later-version'] })
    const task = b.submit({ ...CONTAINER, vramMib: 60 })
    const other = b.submit({ command: ['train'], vramMib: 60 })
    b.cycle()
    expect(other.state).toBe('assigned')
    expect(task.state).toBe('pending')
    expect(missingFeature(requiredFeatures(task.spec), old)).toBe('image')
    expect(missingFeature(requiredFeatures(other.spec), old)).toBeNull()
    expect(b.effects.map(({ taskId }) => taskId)).toEqual([other.spec.id])
    const wait = b.explain(task)
    expect(wait?.primary).toMatchObject({
      reason: 'FEATURE_MISSING',
      nodeIds: ['old', 'other'],
      nodeCount: 2,
    })
    expect(wait?.sentence).toBe(
      'Waiting for a node that supports container images (feature image): the task would fit on old, ' +
        'other, which lack this feature.',
    )
  })

  it('is placed on the one server that offers them, and its start carries the image', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'a-old', gpus: [110, 110] })
    b.addNode({ id: 'b-new', gpus: [110, 110], features: ['image'] })
    const one = b.submit({ ...CONTAINER, vramMib: 60 })
    const two = b.submit({ ...CONTAINER, vramMib: 20, gpuCount: 2, noswap: 1 })
    const plain = b.submit({ command: ['train'], vramMib: 60 })
    b.cycle()
    expect([one, two].map(({ placement }) => placement?.node.id)).toEqual(['b-new', 'b-new'])
    const starts = b.effects.filter((effect) => effect.kind === 'start')
    expect(starts.map(({ taskId, image }) => [taskId, image])).toEqual([
      [one.spec.id, IMAGE],
      [two.spec.id, IMAGE],
      [plain.spec.id, null],
    ])
  })

  it('starts once its server is restarted with a container runtime', () => {
    const b = new ClusterBuilder()
    const node = b.addNode({ id: 'n1', gpus: [110] })
    const task = b.submit(CONTAINER)
    b.cycle()
    expect(task.state).toBe('pending')
    b.hello(node, { features: ['image'] })
    b.cycle()
    expect(task.state).toBe('assigned')
  })

  it('waits again when its server is restarted without one', () => {
    const b = new ClusterBuilder()
    const node = b.addNode({ id: 'n1', gpus: [110], features: ['image'] })
    b.hello(node, { features: [] })
    const task = b.submit(CONTAINER)
    b.cycle()
    expect(b.explain(task)?.primary.reason).toBe('FEATURE_MISSING')
  })

  it('names the feature only where nothing earlier excludes the servers', () => {
    const b = new ClusterBuilder()
    const full = b.addNode({ id: 'full', gpus: [110], features: ['image'] })
    b.addNode({ id: 'old', gpus: [110] })
    b.submit({ ...CONTAINER, vramMib: 90, noswap: 1 })
    b.cycle()
    const task = b.submit({ ...CONTAINER, vramMib: 60 })
    b.cycle()
    expect(b.explain(task)?.primary).toMatchObject({ reason: 'WAITING_VRAM', nodeIds: ['full'] })
    b.silence(full)
    expect(b.explain(task)?.primary).toMatchObject({ reason: 'FEATURE_MISSING', nodeIds: ['old'] })
  })

  it('does not share an explanation with a task that differs in the image only', () => {
    const b = new ClusterBuilder()
    b.addNode({ id: 'n1', gpus: [110] })
    b.submit({ command: ['train'], vramMib: 90 })
    b.cycle()
    const plain = b.submit({ command: ['train'], vramMib: 50 })
    const container = b.submit({ ...CONTAINER, vramMib: 50 })
    b.cycle()
    expect(b.explain(plain)?.primary.reason).toBe('WAITING_VRAM')
    expect(b.explain(container)?.primary.reason).toBe('FEATURE_MISSING')
  })
})

it.each([
  ['an uploaded folder', { workdir: 'a'.repeat(64) }],
  ['a folder of the host', { cwd: '/data' }],
])('A task with %s waits where no server handles files, and its start says it elsewhere', (_what, files) => {
  const b = new ClusterBuilder()
  b.addNode({ id: 'old', gpus: [110], features: ['env', 'image'] })
  const task = b.submit({ command: ['train'], ...files, vramMib: 60 })
  b.cycle()
  expect(b.effects).toEqual([])
  expect(b.explain(task)?.primary.reason).toBe('FEATURE_MISSING')
  expect(b.explain(task)?.sentence).toContain('uploaded files (feature files)')
  b.addNode({ id: 'new', gpus: [110], features: ['files'] })
  b.cycle()
  expect(b.effects).toMatchObject([{ kind: 'start', nodeId: 'new', workdir: null, cwd: null, ...files }])
  const all = b.submit({ command: ['train'], ...files, image: IMAGE, vramMib: 10 })
  expect(requiredFeatures(all.spec)).toEqual(['image', 'files'])
})

it('A scenario with images runs as without them: simulated servers offer every feature', async () => {
  const run = async (more: string) => {
    const text = `scenario: images
version: 1
clock: { until: 1h, drain: false }
fleet: [{ name: a, gpus: 1, gpu: { model: A, vram_mib: 24000 } }]
workload:
  - { task: { id: one, vram_mib: 4000, run: 10m, command: [train]${more} } }
  - { generate: poisson, name: g, rate_per_hour: 20, vram_mib: 8000, duration: 5m${more} }
`
    const { scenario } = loadScenario({ text, baseDir: '.' })
    const { result } = await runScenario(scenario, {
      scenarioSha256: null,
      traceSha256: null,
      version: 'test',
    })
    return result
  }
  const plain = await run('')
  expect(plain.metrics.tasks.completed).toBeGreaterThan(5)
  expect(await run(`, image: '${IMAGE}'`)).toEqual(plain)
})

it('A task with limits waits for a server that sets them, and its start carries them', () => {
  const b = new ClusterBuilder()
  const limits = { memoryMib: 512, cpus: null, pids: 100 }
  const node = b.addNode({ id: 'n1', gpus: [110], features: ['image', 'env'] })
  const task = b.submit({ ...CONTAINER, limits })
  b.cycle()
  expect(b.explain(task)?.sentence).toBe(
    'Waiting for a node that supports memory and CPU limits (feature limits): the task would fit on n1, ' +
      'which lacks this feature.',
  )
  b.hello(node, { features: ['image', 'limits'] })
  b.cycle()
  expect(b.effects).toMatchObject([{ kind: 'start', limits }])
})

it('The limit of memory that is set includes the VRAM that NVIDIA’s driver copies into the process', () => {
  expect(memoryLimitMib(1_000, 'nvidia', 300, 2)).toBe(1_600)
  expect(memoryLimitMib(1_000, 'process', 300, 2)).toBe(1_000)
  expect(memoryLimitMib(null, 'nvidia', 300, 2)).toBe(null)
})

it('Features of a server and the image of a task survive a restart of the controller', async () => {
  const store = createMemoryStore()
  const clock = new VirtualClock(1_000_000)
  const bus = plainBus(clock)
  let seq = 0
  const start = async (): Promise<Controller> => {
    const ports = { clock, random: createSeededRandom(1), bus, store }
    const controller = createController(ports, { areHeartbeatsElided: true })
    await controller.start()
    return controller
  }
  const shown = ({ views }: Controller): unknown => {
    const node = views.node(HELLO.node_id)
    return node === undefined
      ? 'unknown'
      : presentNode(node, DEFAULT_CONFIG, readingsOf(node, views)).features
  }
  const says = (more: Partial<Hello>): void => {
    const head = {
      v: PROTOCOL_VERSION,
      sent_mono: ++seq,
      boot: { counter: 1, random: 'x' },
      seq,
      epoch: 1,
    } as const
    const envelope = { ...head, id: `h${seq}`, body: { ...HELLO, ...more } }
    bus.request(nodeSubject(HELLO.node_id, 'hello'), envelope, 1000, () => {})
    clock.run(clock.now(), () => false)
  }
  const first = await start()
  says({})
  expect(shown(first)).toEqual([])
  says({ features: ['mounts', 'of-a-later-version'] })
  const request = { ...TASK_DEFAULTS, ...DEFAULT_RUN_POLICY, name: null, vramMib: 100, owner: null }
  first.commands.submitTask({ ...request, ...CONTAINER, id: 'a', groups: [], labels: {} }, () => {})
  clock.run(clock.now(), () => false)
  await first.stop()
  const second = await start()
  expect(shown(second)).toEqual(['mounts', 'of-a-later-version'])
  const task = second.views.openTask('a')
  expect(task?.spec.image).toBe(IMAGE)
  says({})
  expect(shown(second)).toEqual([])
  expect(task === undefined ? null : second.views.explain(task)?.primary.reason).toBe('FEATURE_MISSING')
  await second.stop()
})
