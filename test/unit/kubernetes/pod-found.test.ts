/** What a new term finds on a node, and what it may order. */
import { expect, it } from 'vitest'
import type { LaunchRequest } from '../../../gpu-server/core/device.ts'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { AgentLink } from '../../../operator/placing/agent-link.ts'
import type { Bound } from '../../../operator/placing/pod-bindings.ts'
import { PodDevice } from '../../../operator/placing/pod-device.ts'
import type { PodReport } from '../../../protocol/agent-messages.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

const GPU = { uuid: 'a-GPU-0', model: 'X', vramMib: 24_576 }
const SECOND_MS = 1_000

function aNode(pod: Pod) {
  const clock = new VirtualClock(1_000_000)
  const agent = new AgentLink(clock)
  const contradictions: string[] = []
  let bound: (bound: Bound) => void = () => {}
  const device = new PodDevice({
    ...{ nodeName: 'a', gpus: [GPU], bound: [pod], agent, marks: () => [], pod: () => pod },
    bindings: {
      begin: (_claim, _node, done) => {
        bound = done
      },
      abandon: () => {},
    },
    onUnknownGpus: () => {},
    onContradiction: (why) => contradictions.push(why),
    isLate: () => false,
    foreignMib: () => 0,
  })
  const report = (change: Partial<PodReport>): void => {
    const none = { order: 0, outcome: null, why_not: null, wants_gpu: false, idle_ms: 60_000 }
    const pods = [{ pod: 'u', residency: 'in' as const, ...none, ...change }]
    agent.take({ node: 'a', host_swap_mib: 100_000, wait_ms: 0, pods })
  }
  const residency = (): unknown =>
    device.survivors().map((each) => ('residency' in each ? each.residency : null))[0]
  return { clock, agent, device, report, residency, contradictions, end: (how: Bound) => bound(how) }
}

function boundPod(): Pod {
  const { metadata, spec, ...rest } = aPod({ [POD_ANNOTATIONS.gpuUuids]: 'a-GPU-0' })
  return { ...rest, metadata: { ...metadata, uid: 'u' }, spec: { ...spec, nodeName: 'a' } }
}

it('A pod that an earlier term swaps out has its VRAM until the agent says that it is out', () => {
  const { agent, report, residency } = aNode(boundPod())
  const { number } = agent.give('u', 'out', [])
  report({ residency: 'moving', order: number })
  expect(residency()).toBe('resident')
  report({ residency: 'out', order: number, outcome: 'done' })
  expect(residency()).toBe('swapped_out')
})

it('A pod that an earlier term orders in has its VRAM before the agent begins to move it', () => {
  const { agent, report, residency } = aNode(boundPod())
  report({ residency: 'out' })
  expect(residency()).toBe('swapped_out')
  const { number } = agent.give('u', 'in', [])
  expect(residency()).toBe('resident')
  report({ residency: 'out', order: number, outcome: 'no_vram' })
  expect(residency()).toBe('swapped_out')
})

it('No pod is swapped out while its agent is silent: it may be in use again', async () => {
  const { clock, agent, device, report } = aNode(boundPod())
  report({})
  device.survivors()
  const outcomes: string[] = []
  clock.advanceTo(clock.now() + 6 * SECOND_MS)
  device.suspend('u', 1, (outcome) => outcomes.push(outcome))
  await Promise.resolve()
  expect([outcomes, agent.order('u')]).toEqual([['copy_failed'], undefined])
  report({})
  device.suspend('u', 1, (outcome) => outcomes.push(outcome))
  expect(agent.order('u')).toMatchObject({ wanted: 'out' })
})

it('A term ends when a binding that failed turns out to be stored', () => {
  const { device, contradictions, end } = aNode(boundPod())
  const start = { taskId: 'u', attempt: 1, gpus: [0], vramMib: 8_192, noswap: 0 }
  device.launch({ start, env: {} } as unknown as LaunchRequest, () => {})
  end({ error: 'no answer', refused: { cause: 'passing', code: 'binding_failed' } })
  expect(contradictions).toEqual(['pod u is bound to a'])
})
