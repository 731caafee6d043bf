/** Operators over a cluster in virtual time: what seeds of `operator-cluster.test.ts` have found. */
import { expect, it, onTestFinished } from 'vitest'
import { CLUSTER_GPU_POLICY } from '../../../operator/contract/policies.ts'
import { ownResource } from '../../../operator/ports/kube-api.ts'
import { VirtualCluster } from '../../support/kubernetes/virtual/virtual-cluster.ts'
import { aClusterPolicy, aPod } from '../../support/kubernetes/objects.ts'

const GIB = 1024
const SECOND_MS = 1_000
const MINUTE_MS = 60_000

async function aCluster(): Promise<VirtualCluster> {
  const cluster = new VirtualCluster(1, { reserveMib: 0, idleMs: 300 * SECOND_MS })
  onTestFinished(() => cluster.close())
  const policy = aClusterPolicy(100)
  const spec = { ...policy.spec, safetyReserveMib: 0 }
  await cluster.api.create(ownResource(CLUSTER_GPU_POLICY), { ...policy, spec })
  await cluster.addNode('a', { uuid: 'a-GPU-0', mib: 24 * GIB }).join()
  return cluster
}

function boundPods(cluster: VirtualCluster): readonly (string | undefined)[] {
  return [...cluster.pods.values()]
    .filter(({ spec }) => spec.nodeName !== undefined)
    .map(({ metadata }) => metadata.name)
}

async function addPods(cluster: VirtualCluster, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const plain = aPod({ 'headroom.dev/pod-vram': '20Gi' })
    await cluster.addPod({ ...plain, metadata: { ...plain.metadata, name } })
  }
}

it('A node whose label is missing for a moment swaps its pods as before', async () => {
  const cluster = await aCluster()
  cluster.startOperator()
  await cluster.run(5 * SECOND_MS)
  await addPods(cluster, 'one')
  await cluster.run(5 * SECOND_MS)
  for (const isEnabled of [false, true]) {
    await cluster.nodes.get('a')?.setEnabled(isEnabled)
    await cluster.run(2 * SECOND_MS)
  }
  for (const { node, pod } of cluster.running) node.setBusy(pod, false)
  await addPods(cluster, 'two')
  await cluster.run(7 * MINUTE_MS)
  expect(boundPods(cluster)).toEqual(['one', 'two'])
  expect(cluster.judge.violations).toEqual([])
})

it('A new leader places nothing while its copy lacks what the leader before has bound', async () => {
  const cluster = await aCluster()
  const first = cluster.startOperator()
  await cluster.run(5 * SECOND_MS)
  const second = cluster.startOperator()
  cluster.scheduler.unfit.add('a')
  await addPods(cluster, 'one', 'two')
  await cluster.run(5 * SECOND_MS)
  second.api.watchLagMs = MINUTE_MS
  cluster.scheduler.unfit.clear()
  await cluster.run(2 * MINUTE_MS)
  expect(boundPods(cluster)).toEqual(['one'])
  cluster.killOperator(first)
  await cluster.run(5 * MINUTE_MS)
  expect(cluster.judge.violations).toEqual([])
  expect(second.operator.isLeading).toBe(true)
})
