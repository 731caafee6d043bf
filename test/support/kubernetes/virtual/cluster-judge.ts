/** What must hold at every step of a virtual cluster, by the truth of its nodes and of its API server. */
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { type NodeOvercommit, nodeOvercommit } from '../../../../operator/contract/overcommit.ts'
import { podRequestOf } from '../../../../operator/contract/pod-request.ts'
import type {
  ClusterGPUPolicy,
  GPUNodeStatus,
  VendorNodePolicy,
} from '../../../../operator/contract/policies.ts'
import { gpusOf, stageOf } from '../../../../operator/placing/pod-task.ts'
import type { KubeObject } from '../../../../operator/ports/kube-api.ts'
import type { DurationMs, Instant, Mib, Percent } from '../../../../protocol/units.ts'
import type { VirtualNode } from './virtual-node.ts'
import type { VirtualContainer, VirtualPod } from './virtual-pod.ts'

export interface Rules {
  readonly reserveMib: Mib
  readonly idleMs: DurationMs
}

/** The objects of the API server, by name; pods by UID. */
export interface ClusterFacts {
  readonly pods: ReadonlyMap<string, Pod>
  readonly nodes: ReadonlyMap<string, KubeObject>
  readonly gpuNodes: ReadonlyMap<string, KubeObject>
  readonly clusterPolicies: ReadonlyMap<string, KubeObject>
  readonly nodePolicies: ReadonlyMap<string, KubeObject>
}

/** A copy of the cluster may be this much behind when a pod is bound, and so may the percentage be. */
const STALE_MS = 60_000
/** A leader that gives up a claim of another one changes the pod next, and claims again if it was bound. */
const RELEASE_MS = 1_000
/** An operator relies on a report for 5 s, and the sample in it is a second old. */
const REPORT_MS = 7_000
/** An order may take as long as the agent waits for the answer. */
const ORDER_MS = REPORT_MS + 15_000
/** Use while no agent runs is not seen for up to this time. */
const AWAY_MS = 60_000
const MAX_VIOLATIONS = 10

export class ClusterJudge {
  readonly violations: string[] = []
  readonly #facts: ClusterFacts
  readonly #now: () => Instant
  readonly #rules: Rules
  /** When claims were given up, by pod. */
  readonly #released = new Map<string, Instant>()
  /** Percentages by node, as they came into force. */
  readonly #percents = new Map<string, { readonly since: Instant; readonly percent: Percent }[]>()

  constructor(facts: ClusterFacts, now: () => Instant, rules: Rules) {
    this.#facts = facts
    this.#now = now
    this.#rules = rules
  }

  say(violation: string): void {
    if (this.violations.length < MAX_VIOLATIONS) this.violations.push(`${this.#now()}: ${violation}`)
  }

  bytesChanged(node: VirtualNode): void {
    for (const { uuid, mib } of node.gpus) {
      const used = node.usedMib(uuid)
      if (used <= mib) continue
      const pods = node.podsOn(uuid).map((pod) => `${pod.name} ${pod.usedMib} ${pod.residency}`)
      const text = [`others ${node.foreignMib(uuid)}`, ...pods].join('; ')
      this.say(`${uuid} has ${used} of ${mib} MiB in use: ${text}`)
    }
  }

  swapsOut(pod: VirtualPod, containers: readonly VirtualContainer[], unseenMs: DurationMs): void {
    const { name, isSwappable, isBusy, usedAt, idles } = pod
    const now = this.#now()
    if (!isSwappable) this.say(`${name} is swapped out, but is not swappable`)
    for (const container of containers)
      if (container.mib === 0) this.say(`${container.name} of ${name} is stopped, although it has no GPU`)
    for (const container of pod.onGpu)
      if (!containers.includes(container) && now - container.upSince > STALE_MS)
        this.say(`${container.name} of ${name} stays while others of its containers are swapped out`)
    if (containers.every(({ endedOut }) => endedOut)) return
    const idleMs = isBusy ? 0 : now - usedAt
    const recent = idles.filter(({ until }) => now - until <= ORDER_MS + Math.min(unseenMs, AWAY_MS))
    const wasIdleMs = Math.max(0, ...recent.map(({ ms }) => ms))
    if (Math.max(idleMs, wasIdleMs) < this.#rules.idleMs - REPORT_MS)
      this.say(`${name} is swapped out after ${idleMs} ms without use, and ${wasIdleMs} ms before that`)
  }

  claimsChanged(before: GPUNodeStatus, { claims = [] }: GPUNodeStatus): void {
    for (const { podUid } of before.claims ?? [])
      if (!claims.some((claim) => claim.podUid === podUid)) this.#released.set(podUid, this.#now())
  }

  limitsChanged(): void {
    for (const name of this.#facts.nodes.keys()) {
      const { percent } = this.#overcommitOf(name)
      const known = this.#percents.get(name) ?? []
      if (known.at(-1)?.percent !== percent) known.push({ since: this.#now(), percent })
      this.#percents.set(name, known)
    }
  }

  podChanged(before: Pod | null, pod: Pod): void {
    const { nodeName } = pod.spec
    if (before?.spec.nodeName === undefined ? nodeName !== undefined : false) this.#bound(pod)
    else if (before !== null && before.spec.nodeName !== nodeName)
      this.say(`pod ${pod.metadata.name} has moved from ${before.spec.nodeName} to ${nodeName}`)
  }

  #bound(pod: Pod): void {
    const { nodeName = '' } = pod.spec
    const { uid, name } = pod.metadata
    const { gpus = [], claims = [] } = (this.#facts.gpuNodes.get(nodeName)?.['status'] ?? {}) as GPUNodeStatus
    const claim = claims.find(({ podUid }) => podUid === uid)
    const releasedAt = this.#released.get(uid ?? '') ?? -Infinity
    if (claim === undefined) {
      if (this.#now() - releasedAt > RELEASE_MS)
        this.say(`pod ${name} is bound to ${nodeName} without a claim`)
    } else if (claim.gpuUuids.join() !== gpusOf(pod).join())
      this.say(`pod ${name} has other GPUs than its claim`)
    for (const uuid of gpusOf(pod)) {
      const gpu = gpus.find((each) => each.uuid === uuid)
      if (gpu !== undefined) this.#isWithin(pod, nodeName, uuid, gpu.physicalMib)
      // Its node or the label of that may be lost while a binding is on its way: it has no GPUs then.
      else if (gpus.length > 0) this.say(`pod ${name} is bound to ${uuid}, which ${nodeName} does not have`)
    }
  }

  /** Specification 2.3 and 8, by the pods that are bound, whatever the claims say. */
  #isWithin(pod: Pod, nodeName: string, uuid: string, physicalMib: Mib): void {
    const { claims = [] } = (this.#facts.gpuNodes.get(nodeName)?.['status'] ?? {}) as GPUNodeStatus
    const place = ({ metadata: { uid } }: Pod): number => claims.findIndex(({ podUid }) => podUid === uid)
    // Each was admitted after those with an earlier claim.
    const others = [...this.#facts.pods.values()].filter(
      (each) =>
        stageOf(each) === 'bound' &&
        each.spec.nodeName === nodeName &&
        gpusOf(each).includes(uuid) &&
        place(each) <= place(pod),
    )
    const sizes = (swappable: boolean): readonly Mib[] =>
      others.flatMap((each) => {
        const { isSwappable, vramMib } = requestOf(each)
        return isSwappable === swappable ? [vramMib] : []
      })
    const [fixed, movable] = [sizes(false), sizes(true)]
    const capacityMib = physicalMib - this.#rules.reserveMib
    const percent = this.#highestPercent(nodeName)
    const limitMib = percent === 0 ? capacityMib : Math.floor((physicalMib * (100 + percent)) / 100)
    const { name } = pod.metadata
    if (sum(fixed) + Math.max(0, ...movable) > capacityMib)
      this.say(
        `pod ${name} strands a pod on ${uuid}: ${fixed.join()} and ${movable.join()} of ${capacityMib}`,
      )
    if (requestOf(pod).isSwappable && sum(fixed) + sum(movable) > limitMib)
      this.say(
        `pod ${name} exceeds the ${limitMib} MiB of ${uuid} at ${percent} %: ${fixed.concat(movable).join()}`,
      )
  }

  #highestPercent(nodeName: string): Percent {
    const known = this.#percents.get(nodeName) ?? []
    const from = this.#now() - STALE_MS
    return Math.max(
      0,
      ...known.filter((_, i) => (known[i + 1]?.since ?? Infinity) >= from).map(({ percent }) => percent),
    )
  }

  #overcommitOf(name: string): NodeOvercommit {
    const { nodes, nodePolicies, clusterPolicies } = this.#facts
    return nodeOvercommit({
      node: nodes.get(name)?.metadata ?? { name },
      nodePolicies: [...nodePolicies.values()] as unknown as readonly VendorNodePolicy[],
      clusterPolicy: (clusterPolicies.get('default') ?? null) as ClusterGPUPolicy | null,
      helmPercent: 0,
    })
  }
}

export function requestOf(pod: Pod): {
  readonly isSwappable: boolean
  readonly vramMib: Mib
  readonly gpus: number
} {
  const request = podRequestOf(pod)
  if (!request.ok) throw new Error(`pod ${pod.metadata.name} has faults`)
  return request.value
}

function sum(all: readonly Mib[]): Mib {
  return all.reduce((total, mib) => total + mib, 0)
}
