/**
 * The sentences of specification 2.5 about percentages and admission, with etcd, kube-apiserver,
 * kube-scheduler and kube-controller-manager. limits.test.ts shows what the percentages mean, pods.test.ts
 * what pods see of them.
 */
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { AGENT_LABELS, NODE_LABELS, POD_ANNOTATIONS } from '../../operator/contract/names.ts'
import { CLUSTER_GPU_POLICY, VENDOR_NODE_POLICY } from '../../operator/contract/policies.ts'
import { EVENTS, NODES, ownResource, PODS } from '../../operator/ports/kube-api.ts'
import { STACK_NAMESPACE } from '../support/kubernetes/account.ts'
import { argsOf, rendered } from '../support/kubernetes/chart.ts'
import { whyNoControlPlane } from '../support/kubernetes/control-plane.ts'
import { aClusterPolicy, aNodePolicy, aPod } from '../support/kubernetes/objects.ts'
import { addSidecarWebhook } from '../support/kubernetes/other-webhook.ts'
import { PlacingWorld, STACK_WAIT } from '../support/kubernetes/placing-world.ts'

const PHYSICAL_MIB = 24_576
const MISSING = whyNoControlPlane('kube-scheduler', 'kube-controller-manager', 'helm')

/** What the chart makes of its value, for the operator. */
const helmValue = (percent: number): readonly string[] =>
  argsOf('headroom-operator', '--set', `controller.clusterOvercommitPercent=${percent}`).filter((each) =>
    each.startsWith('--overcommit='),
  )

describe.skipIf(MISSING !== null)('On a real control plane', () => {
  let world: PlacingWorld
  beforeAll(async () => {
    // A setting of the standalone controller, which must have no effect in all of these tests.
    vi.stubEnv('CONTROLLER_DEFAULT_VRAM_OVERCOMMIT_PERCENT', '70')
    world = await PlacingWorld.start(...helmValue(20))
    for (const name of ['a', 'b', 'c']) await world.addNode(name, 8, PHYSICAL_MIB / 1024)
  })
  afterAll(async () => {
    vi.unstubAllEnvs()
    await world?.stop()
  })

  const setClusterPolicy = async (percent: number | null): Promise<void> => {
    const kind = ownResource(CLUSTER_GPU_POLICY)
    await world.api.delete(kind, { name: 'default' }).catch(() => {})
    if (percent !== null) await world.api.create(kind, { ...aClusterPolicy(percent) })
  }
  const setNodePolicy = async (name: string, percent: number | null): Promise<void> => {
    const kind = ownResource(VENDOR_NODE_POLICY)
    await world.api.delete(kind, { name }).catch(() => {})
    if (percent !== null) await world.api.create(kind, { ...aNodePolicy(name, percent) })
  }
  const setLabel = (name: string, percent: string | null): Promise<unknown> => {
    const body = { metadata: { labels: { [NODE_LABELS.overcommitPercent]: percent } } }
    return world.api.patch(NODES, { name }, { type: 'merge', body })
  }

  describe('The percentage of a node', () => {
    it('is the Helm value at once while no ClusterGPUPolicy exists, and not while one does', async () => {
      await world.applies('a', 20, 'Helm')
      for (const percent of [0, 50, 1000]) {
        await world.upgradeOperator(...helmValue(percent))
        const { effectiveMib } = await world.applies('a', percent, 'Helm')
        expect(effectiveMib).toBe((PHYSICAL_MIB * (100 + percent)) / 100)
      }
      await setClusterPolicy(30)
      await world.applies('a', 30, 'ClusterGPUPolicy')
      await world.upgradeOperator(...helmValue(50))
      // The new operator has written this one.
      await setClusterPolicy(31)
      await world.applies('a', 31, 'ClusterGPUPolicy')
      await setClusterPolicy(null)
      await world.applies('a', 50, 'Helm')
    })

    it('is 0 by a VendorNodePolicy, which its deletion takes back; a second one is refused', async () => {
      await setNodePolicy('a', 0)
      expect((await world.applies('a', 0, 'VendorNodePolicy')).effectiveMib).toBe(PHYSICAL_MIB)
      await world.applies('b', 50, 'Helm')
      const second = world.api.create(ownResource(VENDOR_NODE_POLICY), { ...aNodePolicy('other', 20, 'a') })
      await expect(second).rejects.toThrow('node "a" already has the VendorNodePolicy a')
      await setNodePolicy('a', null)
      await world.applies('a', 50, 'Helm')
    })

    it('is that of the label before that of ClusterGPUPolicy, and after a VendorNodePolicy', async () => {
      await setLabel('b', '70')
      await world.applies('b', 70, 'NodeLabel')
      await setClusterPolicy(30)
      await world.applies('a', 30, 'ClusterGPUPolicy')
      await world.applies('b', 70, 'NodeLabel')
      await setNodePolicy('b', 1000)
      await world.applies('b', 1000, 'VendorNodePolicy')
      await finding('b', 'OverrideConflict', 'True', 'sets 1000, but label')
      await oneEvent('b', 'OverrideConflict')
      await setNodePolicy('b', null)
      await world.applies('b', 70, 'NodeLabel')
      await finding('b', 'OverrideConflict', 'False', '')
    })

    it('ignores an invalid label, with a condition and one event; -1 is refused', async () => {
      for (const value of ['1001', 'abc']) {
        await setLabel('c', value)
        await finding('c', 'InvalidOverride', 'True', `not "${value}". It is ignored.`)
        await world.applies('c', 30, 'ClusterGPUPolicy')
      }
      await expect(setLabel('c', '-1')).rejects.toThrow('a valid label must be')
      await oneEvent('c', 'InvalidOverride')
      await setLabel('c', null)
      await finding('c', 'InvalidOverride', 'False', '')
    })

    it('ignores the variable of the standalone controller, and answers its requests with 409', async () => {
      const [, port] = await world.operator.says(/metrics on 127\.0\.0\.1:(\d+)/)
      for (const [path, command] of [
        ['config', 'kubectl edit clustergpupolicy default'],
        ['nodes/5f1a4f5e-8c57-4c0e-9b4e-000000000001/config', 'kubectl edit vendornodepolicy'],
      ]) {
        const body = JSON.stringify({ default_vram_overcommit_percent: 90, overcommit_vram_percent: 90 })
        const headers = { 'content-type': 'application/json' }
        const sent = { method: 'PUT', headers, body }
        const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, sent)
        expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining(command ?? '')])
      }
      expect(JSON.stringify(await world.gpuNode('a'))).not.toMatch(/"percent":[79]0/)
      await world.applies('a', 30, 'ClusterGPUPolicy')
    })

    const finding = (node: string, type: string, status: string, text: string): Promise<void> =>
      vi.waitFor(async () => {
        const { conditions = [] } = await world.gpuNode(node)
        const found = conditions.find((each) => each.type === type)
        expect(found).toMatchObject({ status, message: expect.stringContaining(text) })
      }, STACK_WAIT)
    const oneEvent = (node: string, reason: string): Promise<void> =>
      vi.waitFor(async () => {
        const { items } = await world.api.list(EVENTS)
        const own = items.filter((event) => {
          const { name } = event['regarding'] as { readonly name: string }
          return event['reason'] === reason && name === node
        })
        expect(own).toHaveLength(1)
      }, STACK_WAIT)
  })

  describe('The annotation pod-vram', () => {
    it.each([
      ['8Gi', 8192],
      ['8G', 7630],
      ['1500M', 1431],
      ['1.5Gi', 1536],
      ['1e9', 954],
    ])('%s reserves %i MiB', async (text, mib) => {
      const name = `vram-${text.toLowerCase().replace('.', '-')}`
      await world.addPod(name, text, 'a')
      await world.bound(name)
      const { claims = [] } = await world.gpuNode('a')
      expect(claims.find(({ podName }) => podName === name)).toMatchObject({ vramMib: mib, swappable: true })
    })

    it.each(['0', '-1', 'x', '', '8 Gi', '8gi'])('"%s" is refused with its path', async (text) => {
      const path = `metadata.annotations[${POD_ANNOTATIONS.podVram}]: must be a quantity above 0`
      await expect(world.addPod('refused', text, 'a')).rejects.toThrow(path)
    })
  })

  describe('The annotation swap-from-vram', () => {
    it.each(['TRUE', '1', ''])('"%s" is refused with its path', async (text) => {
      const annotations = { [POD_ANNOTATIONS.swapFromVram]: text }
      const path = `metadata.annotations[${POD_ANNOTATIONS.swapFromVram}]: must be "true" or "false"`
      await expect(world.addPod('refused', '1Gi', 'a', { annotations })).rejects.toThrow(path)
    })

    it('is true when it is absent, and cannot be changed or removed later', async () => {
      const { metadata } = await world.addPod('absent', '1Gi', 'a')
      expect(metadata.annotations).toMatchObject({ [POD_ANNOTATIONS.swapFromVram]: 'true' })
      for (const value of ['false', null]) {
        const body = { metadata: { annotations: { [POD_ANNOTATIONS.swapFromVram]: value } } }
        const changed = world.api.patch(
          PODS,
          { namespace: 'default', name: 'absent' },
          { type: 'merge', body },
        )
        await expect(changed).rejects.toThrow('headroom.dev/swap-from-vram')
      }
    })
  })

  it.each(['nvidia', 'Headroom-2', 'x'])('The label gpu-runtime: %s is not ours', async (value) => {
    const pod = aPod({ [POD_ANNOTATIONS.podVram]: 'x' })
    const metadata = { ...pod.metadata, name: 'other', labels: { 'gpu-runtime': value } }
    const made = (await world.api.create(PODS, { ...pod, metadata }, { isDryRun: true })) as unknown as Pod
    expect(made.spec).toMatchObject({ schedulerName: 'default-scheduler' })
    expect(made.spec.schedulingGates).toBeUndefined()
    expect(made.spec.containers[0]?.env).toBeUndefined()
  })

  describe('Admission injects VENDOR_SWAP_FROM_VRAM', () => {
    const swaps = ({ spec }: Pod): Readonly<Record<string, string | undefined>> =>
      Object.fromEntries(
        [...(spec.initContainers ?? []), ...spec.containers].map(({ name, env = [] }) => [
          name,
          env.find((each) => each.name === 'VENDOR_SWAP_FROM_VRAM')?.value,
        ]),
      )
    const created = async (annotation: string, variable: string, name: string): Promise<Pod> => {
      const pod = aPod({ [POD_ANNOTATIONS.swapFromVram]: annotation })
      const env = [{ name: 'VENDOR_SWAP_FROM_VRAM', value: variable }]
      const [main] = pod.spec.containers
      const spec = {
        containers: [
          { ...main!, env },
          { name: 'second', image: 'registry.example/x:1' },
        ],
        initContainers: [{ name: 'first', image: 'registry.example/x:1', env }],
      }
      const object = { ...pod, metadata: { ...pod.metadata, name }, spec }
      return (await world.api.create(PODS, object, { isDryRun: true })) as unknown as Pod
    }

    it.each([
      ['true', '0', '1'],
      ['false', '1', '0'],
    ])('into every container: the annotation %s wins over the variable %s', async (annotation, by, value) => {
      const pod = await created(annotation, by, 'contrary')
      expect(swaps(pod)).toEqual({ first: value, main: value, second: value })
    })

    it('again after another webhook has added a container', async () => {
      const remove = await addSidecarWebhook(world.plane)
      try {
        await vi.waitFor(async () => {
          const pod = await created('false', '1', 'again')
          expect(swaps(pod)).toEqual({ first: '0', main: '0', second: '0', sidecar: '0' })
          const [sidecar] = pod.spec.containers.filter(({ name }) => name === 'sidecar')
          expect(sidecar?.env?.map(({ name }) => name)).toContain('NVIDIA_VISIBLE_DEVICES')
        }, STACK_WAIT)
      } finally {
        await remove()
      }
    })
  })

  it('Each pod of the DaemonSet of the chart gets the percentage of its node', async () => {
    await setNodePolicy('a', 0)
    await setLabel('b', '70')
    await setClusterPolicy(30)
    await world.plane.startControllerManager()
    const set = rendered('--set', 'agent.runtimeClassName=').find(({ kind }) => kind === 'DaemonSet')
    await world.plane.apply([set!])
    await vi.waitFor(async () => {
      const selection = { namespace: STACK_NAMESPACE, labelSelector: selectorOf(AGENT_LABELS) }
      const pods = (await world.api.list(PODS, selection)).items as unknown as readonly Pod[]
      const percents = pods.map(({ spec }) => {
        const [term] =
          spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
        const variable = spec.containers[0]?.env?.find(
          ({ name }) => name === 'VENDOR_VRAM_OVERCOMMIT_PERCENT',
        )
        return [term?.matchFields?.[0]?.values?.[0], variable?.value]
      })
      expect(Object.fromEntries(percents)).toEqual({ a: '0', b: '70', c: '30' })
    }, STACK_WAIT)
  })
})

function selectorOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join()
}
