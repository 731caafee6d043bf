/** What the operator answers to the agent of a node, whatever the pods of the node look like. */
import { expect, it } from 'vitest'
import type { Pod } from '../../../operator/contract/kubernetes.ts'
import { POD_ANNOTATIONS } from '../../../operator/contract/names.ts'
import { AgentLink } from '../../../operator/placing/agent-link.ts'
import { PodDevice } from '../../../operator/placing/pod-device.ts'
import { checkAgentAnswer } from '../../../protocol/agent-messages.ts'
import { VirtualClock } from '../../../simulator/kernel/virtual-clock.ts'
import { aPod } from '../../support/kubernetes/objects.ts'

function boundPod(uid: string, containers: number): Pod {
  const pod = aPod({ [POD_ANNOTATIONS.podVram]: '1Gi', [POD_ANNOTATIONS.gpuUuids]: 'GPU-0' })
  const names = Array.from({ length: containers }, (_, place) => `c${place}`)
  return {
    ...pod,
    metadata: { ...pod.metadata, uid },
    spec: { ...pod.spec, nodeName: 'a', containers: names.map((name) => ({ name })) },
    status: {
      phase: 'Running',
      containerStatuses: names.map((name) => ({ name, containerID: `x://${name}`, state: { running: {} } })),
    },
  }
}

it('A pod with too many containers does not keep the others from their agent', () => {
  const bound = [boundPod('small', 64), boundPod('large', 65)]
  const device = new PodDevice({
    ...{ nodeName: 'a', gpus: [{ uuid: 'GPU-0', model: 'X', vramMib: 24_576 }], bound },
    bindings: { begin: () => {}, abandon: () => {} },
    pod: (uid) => bound.find(({ metadata }) => metadata.uid === uid),
    agent: new AgentLink(new VirtualClock(0)),
    ...{ onUnknownGpus: () => {}, marks: () => [], onContradiction: () => {}, isLate: () => false },
    foreignMib: () => 0,
  })
  device.survivors()
  const answer = device.answer()
  expect(checkAgentAnswer(answer)).toBeNull()
  expect(answer.pods.map(({ pod }) => pod)).toContain('small')
})
