/** The whole stack with the controller manager: Jobs run on GPUs, and their deletion leaves nothing. */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aPod } from '../support/kubernetes/objects.ts'
import { Stack } from '../support/kubernetes/stack.ts'

const WAIT = { timeout: 90_000, interval: 100 }
const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager')

describe.skipIf(MISSING !== null)('With the whole stack', () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await Stack.start({
      nodes: [
        { name: 'one', gpusMib: [24_576, 24_576] },
        { name: 'two', gpusMib: [24_576] },
      ],
      policy: { defaultVramOvercommitPercent: 50, idleSwapOutSeconds: 1, safetyReserveMib: 0 },
    })
  })
  afterAll(() => stack?.stop())

  it('A Job runs its pods on GPUs, and its deletion leaves no pod', async () => {
    const { metadata, spec } = aPod({ [POD_ANNOTATIONS.podVram]: '20Gi' })
    const containers = [{ ...spec.containers[0], command: ['sh', '-c', 'test -n "$NVIDIA_VISIBLE_DEVICES"'] }]
    const { labels, annotations } = metadata
    await stack.plane.apply([
      {
        ...{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'six', namespace: 'default' } },
        spec: {
          ...{ completions: 6, parallelism: 6, backoffLimit: 0 },
          template: { metadata: { labels, annotations }, spec: { restartPolicy: 'Never', containers } },
        },
      },
    ])
    await stack.plane.kubectl(['wait', '--for=condition=complete', '--timeout=90s', 'job/six'])
    await stack.plane.kubectl(['delete', 'job', 'six'])
    await vi.waitFor(
      () => expect(stack.pods.filter(({ metadata: { namespace } }) => namespace === 'default')).toEqual([]),
      WAIT,
    )
  })
})
