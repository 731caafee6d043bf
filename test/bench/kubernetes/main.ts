/**
 * `make bench-kubernetes`: the operator with a real scheduler, API server and etcd, on 1,000 nodes without
 * kubelets. ARGS="NODES PODS ALL_PODS" changes the load. Exits with 1 when a limit is missed.
 */
import { whyNoControlPlane } from '../../support/kubernetes/control-plane.ts'
import { misses, rowsOf, tableOf } from '../table.ts'
import type { Reading } from '../targets.ts'
import { measureOperator, measureStock } from './bind-rate.ts'
import { KUBERNETES_TARGETS, type KubernetesMeasure } from './kubernetes-targets.ts'

const [nodes = 1_000, pods = 4_000, allPods = 10_000] = process.argv.slice(2).map(Number)
if (whyNoControlPlane('kube-scheduler') !== null) process.exit(2)

const load = { nodes, pods, allPods }
const stock = await measureStock(load)
console.log(
  `stock scheduler: ${stock.podsPerS.toFixed(0)} pods/s, ` +
    `${stock.schedulerMsPerPod.toFixed(2)} ms CPU per pod`,
)
const ours = await measureOperator(load)
const writes = [...ours.writes].map(([what, count]) => `${what} ${(count / pods).toFixed(2)}`)
const allWrites = [...ours.writes.values()].reduce((sum, each) => sum + each, 0)
console.log(
  `operator: ${ours.podsPerS.toFixed(0)} pods/s with all writes (${ours.boundPerS.toFixed(0)} bound/s), ` +
    `CPU per pod: operator ${ours.operatorMsPerPod.toFixed(2)} ms, scheduler ` +
    `${ours.schedulerMsPerPod.toFixed(2)} ms; window ${ours.seconds.toFixed(1)} s`,
)
console.log(`writes per pod: ${writes.join(', ')}`)

const readings: readonly Reading<KubernetesMeasure>[] = [
  { name: 'bind_rate_ratio', value: ours.podsPerS / stock.podsPerS, note: `${pods} pods on ${nodes} nodes` },
  {
    name: 'operator_cpu_ratio',
    value: ours.operatorMsPerPod / ours.schedulerMsPerPod,
    note: `${ours.operatorMsPerPod.toFixed(2)} ms per pod`,
  },
  { name: 'writes_per_pod', value: allWrites / pods, note: 'without the lease' },
  { name: 'operator_rss_mib', value: ours.rss.now, note: `${allPods} pods; peak ${ours.rss.peak} MiB` },
  { name: 'relist_s', value: ours.relistMs / 1000, note: `leads again after ${ours.readyMs / 1000} s` },
]
for (const { name, value, note } of readings) console.log(`${name} ${value}: ${note}`)
console.log(`\n${tableOf(readings, KUBERNETES_TARGETS)}`)
process.exitCode = rowsOf(readings, KUBERNETES_TARGETS).some(misses) ? 1 : 0
