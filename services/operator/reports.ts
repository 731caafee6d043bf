/** Reports of the leading operator for people: conditions of pods, status of nodes and policies. */
import type { Pod } from '../../operator/contract/kubernetes.ts'
import { faultText } from '../../operator/contract/field-fault.ts'
import { ADMITTED_CONDITION, CLASS_LABEL } from '../../operator/contract/names.ts'
import { nodeOfPolicy, policyOfNode } from '../../operator/contract/overcommit.ts'
import { classOfLabel } from '../../operator/contract/pod-class.ts'
import {
  CLUSTER_GPU_POLICY,
  GPU_NODE,
  type OwnKind,
  VENDOR_NODE_POLICY,
} from '../../operator/contract/policies.ts'
import { type EventSubject, Events, type Happening } from '../../operator/placing/events.ts'
import { newFaults } from '../../operator/placing/node-status.ts'
import { observedAdmission } from '../../operator/placing/observed.ts'
import { podText } from '../../operator/placing/pod-task.ts'
import {
  type Admission,
  boundAdmission,
  PodConditions,
  RESERVED_AFTER_MS,
  WAITING_AFTER_MS,
} from '../../operator/placing/pod-conditions.ts'
import { type PolicyFacts, reportPolicy } from '../../operator/placing/policy-status.ts'
import {
  apiVersionOf,
  type KubeApi,
  type KubeObject,
  ownResource,
  PRIORITY_CLASSES,
} from '../../operator/ports/kube-api.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
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
  /** Name of this replica. */
  readonly name: string
  readonly onNote: (line: string) => void
}

export class Reports {
  readonly #api: KubeApi
  readonly #objects: ClusterObjects
  readonly #placement: Placement
  readonly #onNote: (line: string) => void
  readonly #conditions: PodConditions
  readonly #events: Events
  /** What was reported about PriorityClasses, by UID. */
  readonly #badClasses = new Map<string, string>()
  #round = 0
  #areNodesDue = true
  #running: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor({ api, objects, placement, name, onNote }: ReportsOptions) {
    this.#api = api
    this.#objects = objects
    this.#placement = placement
    this.#onNote = onNote
    const now = (): Instant => placement.clock.now()
    this.#conditions = new PodConditions(api, now)
    this.#events = new Events(api, now, name)
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
    const now = wholeSeconds(this.#placement.clock.now())
    this.#placement.dropGonePods()
    this.#conditions.forgetGone((uid) => this.#objects.pod(uid) === undefined)
    await this.#placement.repairClaims()
    // Also those that are no longer nodes of Headroom.
    const nodes = this.#objects.nodes().map(({ metadata: { name = '' } }) => name)
    await inParallel(new Set([...nodes, ...this.#objects.gpuNodeNames()]), WRITES_AT_A_TIME, async (name) => {
      if (!this.#isStopped)
        await this.#placement.faults.tried(`the report of node ${name}`, () => this.#reportNode(name))
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
      if (admission === null) return
      const tried = `the condition of pod ${podText(pod)}`
      const fault = await this.#placement.faults.tried(tried, async () => {
        if (await this.#writeCondition(pod, admission)) writes += 1
      })
      if (fault !== null) writes += 1
    })
  }

  async #writeCondition(pod: Pod, admission: Admission): Promise<boolean> {
    const written = await this.#conditions.write(pod, admission)
    if (written === 'reason' && !isToldByScheduler(pod, admission))
      await this.#tell(podSubject(pod), happeningOf(admission))
    return written !== null
  }

  async #reportNode(name: string): Promise<void> {
    const book = this.#placement.book(name)
    const before = book.status
    await this.#placement.report(name)
    for (const { reason, message } of newFaults(before, book.status))
      await this.#tell(nodeSubject(name, book.uid), { type: 'Warning', reason, note: message })
  }

  /** Reports continue without it. */
  async #tell(subject: EventSubject, happening: Happening): Promise<void> {
    try {
      await this.#events.tell(subject, happening)
    } catch (error) {
      this.#onNote(`an event was not written: ${errorText(error)}`)
    }
  }

  #admissionOf(pod: Pod): Admission | null {
    const { uid = '' } = pod.metadata
    const stage = this.#placement.stageOf(pod)
    if (stage === 'over') this.#conditions.forget(uid)
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
    if (!this.#conditions.isDue(pod, afterMs)) return null
    if (task.placement !== null)
      return {
        status: 'True',
        reason: 'Reserved',
        message: `VRAM is reserved on ${task.placement.node.name}.`,
      }
    const why = this.#placement.whyWaiting(uid)
    return { status: 'False', reason: 'WaitingForVRAM', message: why }
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
        await this.#tell(classSubject(name, uid), { type: 'Warning', reason: 'InvalidClass', note })
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
      await this.#reportPolicy(CLUSTER_GPU_POLICY, cluster as unknown as KubeObject, facts)
    }
    const policies = this.#objects.nodePolicies()
    for (const policy of policies) {
      const node = nodeOfPolicy(policy)
      const applies = policyOfNode(node, policies) === policy
      const fault = applies ? null : `Node ${node} has an older VendorNodePolicy.`
      await this.#reportPolicy(VENDOR_NODE_POLICY, policy as unknown as KubeObject, { fault, now })
    }
  }

  async #reportPolicy(own: OwnKind, policy: KubeObject, facts: PolicyFacts): Promise<void> {
    await this.#placement.faults.tried(`the status of ${own.kind} ${policy.metadata.name}`, () =>
      reportPolicy(this.#api, ownResource(own), policy, facts),
    )
  }
}

/** Its event says that the pod was bound, and to which node; the pod has waited for nothing. */
function isToldByScheduler({ status }: Pod, { reason }: Admission): boolean {
  return reason === 'Bound' && status?.conditions?.some(({ type }) => type === ADMITTED_CONDITION) !== true
}

function happeningOf({ reason, message: note }: Admission): Happening {
  return { type: 'Normal', reason, note }
}

function podSubject({ metadata: { namespace = '', name = '', uid = '' } }: Pod): EventSubject {
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid }
}

function nodeSubject(name: string, uid: string): EventSubject {
  return { apiVersion: apiVersionOf(ownResource(GPU_NODE)), kind: GPU_NODE.kind, name, uid }
}

function classSubject(name: string, uid: string): EventSubject {
  return { apiVersion: apiVersionOf(PRIORITY_CLASSES), kind: PRIORITY_CLASSES.kind, name, uid }
}
