/** Agents that report after a term has begun. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { KubeApi } from '../../../operator/ports/kube-api.ts'
import type { PodReport } from '../../../protocol/agent-messages.ts'
import { nodeIdFromName } from '../../../protocol/node-id.ts'
import { LateAgents } from '../../../services/operator/late-agents.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { delegating, OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
const NODES = 20
const HOST_MIB = 64 * GIB
let world: OperatorWorld
beforeEach(() => {
  world = new OperatorWorld()
})
afterEach(() => world.stop())

it('Twenty agents that report one after the other cause few terms, and each pod is bound once', async () => {
  const bound: string[] = []
  const api: KubeApi = {
    ...delegating(world.api),
    create: async (kind, object, options) => {
      const made = await world.api.create(kind, object, options)
      if (options?.subresource === 'binding') bound.push(object.metadata.name ?? '')
      return made
    },
  }
  const nodes = Array.from({ length: NODES }, (_, place) => `node-${place}`)
  for (const name of nodes) await world.addNode(name, 12 * GIB)
  const operator = world.start({ api })
  const placement = () => vi.waitFor(() => operator.placement ?? expect.unreachable(), WAIT)
  const pods = nodes.map((name) => `first-${name}`)
  for (const name of pods) await world.addPod(name, '6Gi')
  const areBound = () =>
    vi.waitFor(() => {
      expect(new Set(bound)).toEqual(new Set(pods))
      expect(bound).toHaveLength(pods.length)
    }, WAIT)
  await areBound()
  const swapped = await world.pod(pods[0] ?? '')
  const { uid = '' } = swapped.metadata
  for (const node of nodes) {
    const gpus = [{ uuid: `${node}-GPU-0`, model: 'X', vram_mib: 12 * GIB, foreign_mib: 0 }]
    const out: PodReport = {
      ...{ pod: uid, residency: 'out', order: 0, outcome: null, why_not: null, wants_gpu: false },
      idle_ms: 1,
    }
    const own = node === swapped.spec.nodeName ? [out] : []
    await placement()
    await operator.agentReported({ node, host_swap_mib: HOST_MIB, wait_ms: 0, gpus, pods: own })
    operator.placement?.settle()
    pods.push(`later-${node}`)
    await world.addPod(`later-${node}`, '3Gi')
  }
  await vi.waitFor(async () => {
    const { views } = (await placement()).controller
    for (const name of nodes) expect(views.node(nodeIdFromName(name))?.hostSwapMib).toBe(HOST_MIB)
    expect(views.counts().running).toBe(pods.length)
  }, WAIT)
  await areBound()
  expect((await placement()).isOut(swapped.spec.nodeName ?? '', uid)).toBe(true)
  expect(world.notes.filter((line) => line.startsWith('begins again')).length).toBeLessThanOrEqual(3)
})

it('A new term waits until no further agent has reported for 5 s, and at most 30 s', () => {
  const clock = new VirtualClock(0)
  const until = (instant: number): void => {
    clock.at(instant, () => {})
    while (clock.step(instant));
  }
  const due: string[] = []
  const late = new LateAgents(clock, (why) => due.push(`${clock.now()}: ${why}`))
  late.take(['a'])
  late.take([])
  until(6_000)
  late.take(['a'])
  until(10_000)
  late.take(['a', 'b'])
  until(20_000)
  expect(due).toEqual(['15000: the host memory of the agents of nodes a, b has changed'])
  const often = new LateAgents(clock, (why) => due.push(`${clock.now()}: ${why}`))
  for (let names = ['c']; due.length === 1; names = [...names, 'c']) {
    often.take(names)
    until(clock.now() + 4_000)
  }
  expect(due[1]).toMatch(/^50000: /)
})
