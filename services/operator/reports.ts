/** Reports of the leading operator for people: conditions of pods, status of nodes and policies. */
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import { CLASS_LABEL } from '../../operator/contract/names.ts'
import { nodeOfPolicy, policyOfNode } from '../../operator/contract/overcommit.ts'
import { classOfLabel } from '../../operator/contract/pod-class.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../../operator/contract/policies.ts'
import { isEnabled } from '../../operator/placing/declared-gpus.ts'
import type { EventSubject } from '../../operator/placing/events.ts'
import { newFaults } from '../../operator/placing/node-status.ts'
import { observedAdmission } from '../../operator/placing/observed.ts'
import {
  type Admission,
  boundAdmission,
  reservedAdmission,
  RESERVED_AFTER_MS,
  WAITING_AFTER_MS,
  waitingAdmission,
} from '../../operator/placing/pod-conditions.ts'
import { reportPolicy } from '../../operator/placing/policy-status.ts'
import {
  apiVersionOf,
  type KubeApi,
  type KubeObject,
  ownResource,
  PRIORITY_CLASSES,
} from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { inParallel } from '../in-parallel.ts'
import type { ClusterObjects } from './cluster-objects.ts'
import type { Placement } from './placement.ts'
import { wholeSeconds } from './placement-parts.ts'

const PODS_EVERY_MS: DurationMs = 1_000
/** Nodes, policies and claims of every nth round. */
const NODES_EVERY_ROUNDS = 10
const REFUSED_EVERY_ROUNDS = 30
/** Also without a change: pods of others, which are not seen, may have freed CPU or memory. */
const REFUSED_ALL_EVERY_ROUNDS = 300
/** Conditions of one round. */
const MAX_WRITES = 2_000
const WRITES_AT_A_TIME = 16

export interface ReportsOptions {
  readonly api: KubeApi
  readonly objects: ClusterObjects
  readonly placement: Placement
  readonly onNote: (line: string) => void
}

export class Reports {
  readonly #api: KubeApi
  readonly #objects: ClusterObjects
  readonly #placement: Placement
  readonly #onNote: (line: string) => void
  /** What was reported about PriorityClasses, by UID. */
  readonly #badClasses = new Map<string, string>()
  #round = 0
  #areNodesDue = true
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor({ api, objects, placement, onNote }: ReportsOptions) {
    this.#api = api
    this.#objects = objects
    this.#placement = placement
    this.#onNote = onNote
  }

  start(): void {
    const { clock } = this.#placement
    clock.at(clock.now() + PODS_EVERY_MS, () => {
      if (this.#isStopped) return
      this.#running = this.#write()
        .catch((error: unknown) => this.#onNote(`a report was not written: ${errorText(error)}`))
        .then(() => this.start())
    })
  }

  /** Nodes or policies have changed. */
  nodesChanged(): void {
    this.#areNodesDue = true
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
  }

  async #write(): Promise<void> {
    this.#round += 1
    this.#placement.settle()
    await this.#writePods()
    if (this.#round % REFUSED_EVERY_ROUNDS === 0)
      this.#placement.tryRefusedAgain(this.#round % REFUSED_ALL_EVERY_ROUNDS === 0)
    if (!this.#areNodesDue && this.#round % NODES_EVERY_ROUNDS !== 0) return
    this.#areNodesDue = false
    const now = wholeSeconds(new Date(this.#placement.clock.now()))
    this.#placement.dropGonePods()
    await this.#placement.repairClaims()
    await inParallel(this.#objects.nodes(), WRITES_AT_A_TIME, async ({ metadata }) => {
      // Other nodes of the cluster are left alone; one that was ours says so.
      const isOurs = isEnabled(metadata) || this.#objects.gpuNode(metadata.name ?? '') !== null
      if (isOurs && !this.#isStopped) await this.#reportNode(metadata.name ?? '', now)
    })
    if (this.#isStopped) return
    await this.#writePolicies(now)
    await this.#tellBadClasses()
  }

  async #writePods(): Promise<void> {
    let writes = 0
    await inParallel(this.#objects.pods(), WRITES_AT_A_TIME, async (pod) => {
      if (this.#isStopped || writes >= MAX_WRITES) return
      const admission = this.#admissionOf(pod)
      const { announcements } = this.#placement
      // Most pods have nothing new: a promise for each of them, each second, would cost memory.
      if (admission === null || !announcements.conditions.isNews(pod, admission)) return
      if (await announcements.write(pod, admission)) writes += 1
    })
  }

  async #reportNode(name: string, now: string): Promise<void> {
    const book = this.#placement.book(name)
    const before = book.status
    await this.#placement.report(name, now)
    for (const { reason, message } of newFaults(before, book.status))
      await this.#placement.announcements.tell(nodeSubject(name, book.uid), {
        type: 'Warning',
        reason,
        note: message,
      })
  }

  #admissionOf(pod: Pod): Admission | null {
    const { uid = '' } = pod.metadata
    const stage = this.#placement.stageOf(pod)
    const { conditions } = this.#placement.announcements
    if (stage === 'over') conditions.forget(uid)
    if (stage === 'bound')
      return boundAdmission(pod, this.#placement.residencyOf(pod.spec.nodeName ?? '', uid))
    if (stage !== 'waiting') return null
    const { views } = this.#placement.controller
    const task = views.openTask(uid)
    if (task === undefined) return null
    if (this.#placement.observes)
      return observedAdmission(pod, task.placement?.node.name ?? null, this.#placement.whyWaiting(uid))
    // An explanation takes time, and most pods start at once.
    const afterMs = task.placement === null ? WAITING_AFTER_MS : RESERVED_AFTER_MS
    const status = task.placement === null ? 'False' : 'True'
    if (!conditions.isDue(pod, status, afterMs)) return null
    if (task.placement !== null) return reservedAdmission(task.placement.node.name)
    return waitingAdmission(this.#placement.whyWaiting(uid))
  }

  /** A PriorityClass has no status: an event tells each value once. */
  async #tellBadClasses(): Promise<void> {
    for (const { metadata } of this.#objects.priorityClasses()) {
      const { name = '', uid = '', labels = {} } = metadata
      const label = classOfLabel(labels[CLASS_LABEL])
      const note = label.ok ? null : `${label.faults.map(faultText).join('; ')}. It is ignored.`
      if (note === (this.#badClasses.get(uid) ?? null)) continue
      if (note === null) this.#badClasses.delete(uid)
      else {
        this.#badClasses.set(uid, note)
        await this.#placement.announcements.tell(classSubject(name, uid), {
          type: 'Warning',
          reason: 'InvalidClass',
          note,
        })
      }
    }
  }

  async #writePolicies(now: string): Promise<void> {
    const cluster = this.#objects.clusterPolicy()
    if (cluster !== null) {
      const names = this.#objects.nodes().map(({ metadata }) => metadata.name ?? '')
      const { settings } = this.#placement
      const nodes = names.filter((name) => settings.overcommitOf(name).source === 'ClusterGPUPolicy').length
      const facts = { fault: null, nodes, now }
      await reportPolicy(this.#api, ownResource(CLUSTER_GPU_POLICY), cluster as unknown as KubeObject, facts)
    }
    const policies = this.#objects.nodePolicies()
    for (const policy of policies) {
      const node = nodeOfPolicy(policy)
      const applies = policyOfNode(node, policies) === policy
      const fault = applies ? null : `Node ${node} has an older VendorNodePolicy.`
      const object = policy as unknown as KubeObject
      await reportPolicy(this.#api, ownResource(VENDOR_NODE_POLICY), object, { fault, now })
    }
  }
}

function nodeSubject(name: string, uid: string): EventSubject {
  return { apiVersion: apiVersionOf(ownResource(GPU_NODE)), kind: GPU_NODE.kind, name, uid }
}

function classSubject(name: string, uid: string): EventSubject {
  return { apiVersion: apiVersionOf(PRIORITY_CLASSES), kind: PRIORITY_CLASSES.kind, name, uid }
}
