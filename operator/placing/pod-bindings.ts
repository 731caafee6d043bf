/**
 * Pods on their way to the node that the controller has chosen:
 * 1. The gate is removed. From now on the scheduler of Kubernetes asks where the pod may run.
 * 2. `filter` offers the chosen node alone. If the scheduler does not propose that node, the pod does not fit
 *    there for other reasons than VRAM, and the controller chooses again.
 * 3. `bind` writes the claim, then the binding. A binding names a version of the pod from before its claim
 *    was written, and an operator that gives up the claim of another one changes that version: one that was
 *    paused in between binds nothing. The pods without a gate that are on their way to the same node get
 *    their claims in the same write, because each of them needs one soon.
 */
import type { CancelTimer, Clock } from '../../controller/ports/clock.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { DurationMs, Instant } from '../../protocol/units.ts'
import type { Pod } from '../contract/kubernetes.ts'
import { SCHEDULING_GATE } from '../contract/names.ts'
import type { Claim } from '../contract/policies.ts'
import { CONFLICT, type KubeApi, KubeError, PODS } from '../ports/kube-api.ts'
import { type Bindable, bindingOf, isBoundTo, keyOf, type PodKey } from './binding.ts'
import { type NodeLimits, withAddedClaim, withClaim, withoutClaim } from './claims.ts'
import type { NodeBook } from './node-book.ts'
import { touchedPod } from './touched-pod.ts'

export type Bound = { readonly error: null } | { readonly error: string; readonly refused: StartRefused }

export interface PodBindingsOptions {
  readonly api: KubeApi
  readonly clock: Clock
  /** Returns the pod as last seen; undefined: it was deleted. */
  readonly pod: (uid: string) => Pod | undefined
  readonly book: (nodeName: string) => NodeBook
  readonly limits: (nodeName: string) => NodeLimits
  /** Whether this operator leads now. */
  readonly leads: () => boolean
  /** Why a pod waits that has no node yet. */
  readonly whyWaiting: (uid: string) => string
  readonly onFault: (error: unknown) => void
  readonly bindWithinMs?: DurationMs
}

export interface FilterAnswer {
  readonly nodeNames: readonly string[]
  /** Why not, for each other node. */
  readonly failed: Readonly<Record<string, string>>
}

interface Way extends Bindable {
  readonly done: (bound: Bound) => void
  /** The scheduler's message about the pod from earlier tries. */
  said: string | null
  cancel: CancelTimer
  /** Null: the scheduler has not asked for the binding yet. */
  binding: Promise<Bound> | null
  /** As the API server answered when the gate was removed. */
  ungated: Pod | null
  /**
   * The claim that was written with that of another pod. Resolves with the pod from before that; null: the
   * claim is not stored.
   */
  ahead: Promise<Pod | null> | null
}

const BIND_WITHIN_MS = 30_000
/** The scheduler has its own queue: a pod that it has not tried waits this long while it binds others. */
const UNTRIED_WITHIN_MS = 600_000
/** The scheduler has seen a pod without its gate before, and its pause between two tries is short. */
const BIND_AGAIN_WITHIN_MS = 10_000
/** A start that failed for a passing reason is not repeated at once. */
const PAUSE_MS = 2_000
const BIND_TRIES = 4
/** Bindings need the API server more urgently. */
const UNGATED_AT_A_TIME = 16
/** Of one pod: its condition is at most a few tries behind. */
const MAX_REFUSALS = 4
const CONSTRAINTS: StartRefused = { cause: 'task', code: 'node_constraints' }
const ABANDONED = 'abandoned'
const NOT_LEADER = 'another operator leads'
const PASSING = (code: string): StartRefused => ({ cause: 'passing', code })

/** For pods that are placed, or only observed. */
export type Bindings = Pick<PodBindings, keyof PodBindings>

export class PodBindings implements Bindings {
  readonly #options: PodBindingsOptions
  readonly #ways = new Map<string, Way>()
  /** Those whose gate is to be removed, in order. */
  readonly #gated: Way[] = []
  #ungating = 0
  /**
   * Why `filter` last refused all nodes, by pod. The scheduler writes it into the condition of the pod, which
   * may arrive after a later answer.
   */
  readonly #refusals = new Map<string, readonly string[]>()
  /** What the scheduler said when no node fitted, by pod: until they are tried again, of each node. */
  readonly #unfit = new Map<string, string>()
  #touched = 0
  /** Time of the last binding. */
  #boundAt: Instant = -Infinity

  constructor(options: PodBindingsOptions) {
    this.#options = options
  }

  /** `done` is called once, later. */
  begin(claim: Claim, nodeName: string, done: (bound: Bound) => void): void {
    const said = this.#schedulerSaid(claim.podUid)
    const none = { binding: null, ungated: null, ahead: null }
    const way: Way = { claim, nodeName, done, said, cancel: () => {}, ...none }
    this.#ways.set(claim.podUid, way)
    // The scheduler looks at the pod again only after a change, and nothing would use the VRAM until then.
    if (said !== null && said === this.#unfit.get(claim.podUid)) return this.#endUnfit(way, said)
    this.#gated.push(way)
    this.#ungateNext()
  }

  /** The pod ends, or the controller has changed its mind. A binding in progress decides itself. */
  abandon(podUid: string, why: string): void {
    const way = this.#ways.get(podUid)
    if (way?.binding === null) this.#end(way, { error: why, refused: PASSING(ABANDONED) })
  }

  /** The scheduler may have found that no node fits for other reasons than VRAM: then it asks nothing. */
  podChanged(podUid: string): void {
    const way = this.#ways.get(podUid)
    const said = this.#schedulerSaid(podUid)
    if (way?.binding !== null || said === null || said === way.said) return
    way.said = said
    if (!this.#isRefusal(podUid, said)) this.#endUnfit(way, said)
  }

  /** Whether it says why `filter` refused all nodes. */
  #isRefusal(podUid: string, said: string): boolean {
    return this.#refusals.get(podUid)?.some((why) => said.includes(why)) === true
  }

  #endUnfit(way: Way, said: string): void {
    this.#unfit.set(way.claim.podUid, said)
    this.#end(way, { error: `the scheduler found no node: ${said}`, refused: CONSTRAINTS })
  }

  /** The scheduler may find a node now for pods that fitted none. */
  tryAgain(): void {
    this.#unfit.clear()
  }

  /** This replica no longer leads, so it decides nothing more. */
  close(): void {
    for (const way of this.#ways.values()) way.cancel()
    this.#ways.clear()
  }

  /** @param nodeName to this node only */
  isOnItsWay(podUid: string, nodeName?: string): boolean {
    const way = this.#ways.get(podUid)
    return way !== undefined && (nodeName === undefined || way.nodeName === nodeName)
  }

  filter(podUid: string, candidates: readonly string[]): FilterAnswer {
    const way = this.#ways.get(podUid)
    if (way === undefined) return this.#refused(podUid, candidates, this.#options.whyWaiting(podUid))
    const { nodeName } = way
    // The scheduler reads no reasons when a node is left.
    if (candidates.includes(nodeName)) return { nodeNames: [nodeName], failed: {} }
    const error = `the scheduler does not propose ${nodeName}`
    if (way.binding === null) this.#end(way, { error, refused: CONSTRAINTS })
    const why = `VRAM is reserved on ${nodeName}, which is not among the candidates`
    return this.#refused(podUid, candidates, why)
  }

  /** Resolves with null once the pod is bound, or with the reason. */
  async bind(podUid: string, nodeName: string): Promise<string | null> {
    const way = this.#ways.get(podUid)
    if (way === undefined) return 'no VRAM is reserved for the pod'
    if (way.nodeName !== nodeName) return `VRAM is reserved on ${way.nodeName}, not on ${nodeName}`
    // The scheduler asks again if the answer takes too long.
    way.binding ??= this.#bound(way)
    return (await way.binding).error
  }

  async #bound(way: Way): Promise<Bound> {
    way.cancel()
    const bound = await this.#bind(way).catch((error: unknown) => this.#afterFault(way, error))
    if (bound.error === null) this.#boundAt = this.#options.clock.now()
    this.#end(way, bound)
    return bound
  }

  forget(podUid: string): void {
    this.#refusals.delete(podUid)
    this.#unfit.delete(podUid)
  }

  /**
   * Gives up the claim of a pod that is not bound. Resolves with the pod; null: it is gone. The first change
   * of its version holds if the second one fails, the second one if the operator with the claim changes the
   * version itself meanwhile.
   */
  async release(podUid: string, key: PodKey, book: NodeBook): Promise<Pod | null> {
    await this.#touch(podUid, key)
    await book.change((status) => withoutClaim(status, podUid))
    return this.#touch(podUid, key)
  }

  /** Gives the pod a new version. Null: it is gone. */
  async #touch(podUid: string, key: PodKey): Promise<Pod | null> {
    this.#touched += 1
    const mark = `${this.#options.clock.now()}.${this.#touched}`
    return touchedPod(this.#options.api, podUid, key, mark)
  }

  #ungateNext(): void {
    while (this.#ungating < UNGATED_AT_A_TIME) {
      const way = this.#gated.shift()
      if (way === undefined) return
      this.#ungating += 1
      void this.#ungate(way)
        .catch((error: unknown) => {
          this.#options.onFault(error)
          // The gate may be gone all the same, and then a binding in progress decides itself.
          if (way.binding === null)
            this.#end(way, { error: errorText(error), refused: PASSING('api_server') })
        })
        .finally(() => {
          this.#ungating -= 1
          this.#ungateNext()
        })
    }
  }

  async #ungate(way: Way): Promise<void> {
    if (this.#ways.get(way.claim.podUid) !== way) return
    const { pod: podOf, api, bindWithinMs = BIND_WITHIN_MS } = this.#options
    const pod = podOf(way.claim.podUid)
    if (pod === undefined) return this.#end(way, { error: 'the pod is gone', refused: PASSING('pod_gone') })
    const gates = pod.spec.schedulingGates ?? []
    const place = gates.findIndex(({ name }) => name === SCHEDULING_GATE)
    if (place === -1) way.ungated = await this.#touch(way.claim.podUid, keyOf(way.claim))
    else {
      const path = `/spec/schedulingGates/${place}`
      way.ungated = (await api.patch(PODS, keyOf(way.claim), {
        type: 'json',
        body: [
          { op: 'test', path: '/metadata/uid', value: way.claim.podUid },
          { op: 'test', path: `${path}/name`, value: SCHEDULING_GATE },
          { op: 'remove', path },
        ],
      })) as unknown as Pod
    }
    if (this.#ways.get(way.claim.podUid) !== way || way.binding !== null) return
    const withinMs = place === -1 ? Math.min(bindWithinMs, BIND_AGAIN_WITHIN_MS) : bindWithinMs
    this.#await(way, withinMs, this.#options.clock.now())
  }

  #await(way: Way, withinMs: DurationMs, since: Instant): void {
    const { clock } = this.#options
    way.cancel = clock.at(clock.now() + withinMs, () => {
      const said = this.#schedulerSaid(way.claim.podUid)
      const now = clock.now()
      const bindsOthers = now - this.#boundAt < withinMs
      if (said === null && bindsOthers && now - since < UNTRIED_WITHIN_MS)
        return this.#await(way, withinMs, since)
      // It has not looked at the pod again.
      if (said !== null && !this.#isRefusal(way.claim.podUid, said)) return this.#endUnfit(way, said)
      // It may be away: nothing is known about the node.
      const error = `the scheduler has not tried the pod within ${withinMs / 1000} s`
      this.#end(way, { error, refused: PASSING('not_tried') })
    })
  }

  async #bind(way: Way): Promise<Bound> {
    const { api, book, leads } = this.#options
    const { claim, nodeName } = way
    const own = book(nodeName)
    let pod = await way.ahead
    if (pod === null) {
      pod = this.#ungated(way) ?? (await this.#touch(claim.podUid, keyOf(claim)))
      const claimed = this.#claim(way, own)
      this.#claimAhead(nodeName, own)
      const refused = await claimed
      if (refused !== null) return { error: refused, refused: PASSING('claim_refused') }
    }
    for (let tries = 1; ; tries += 1) {
      if (pod === null) {
        await own.change((status) => withoutClaim(status, claim.podUid))
        return { error: 'the pod is gone', refused: PASSING('pod_gone') }
      }
      if (isBoundTo(pod, way)) return { error: null }
      if (!leads()) return { error: NOT_LEADER, refused: PASSING('not_leader') }
      try {
        await api.create(PODS, bindingOf(way, pod), { subresource: 'binding' })
        return { error: null }
      } catch (error) {
        const isOutdated = error instanceof KubeError && error.code === CONFLICT
        if (!isOutdated || tries === BIND_TRIES) throw error
      }
      // The claim may have been given up by another operator meanwhile.
      pod = await this.#touch(claim.podUid, keyOf(claim))
      const { claims = [] } = await own.reread()
      if (!claims.some(({ podUid }) => podUid === claim.podUid))
        return { error: 'its claim was released', refused: PASSING('claim_lost') }
    }
  }

  /** Resolves with null once the claim is stored, or with the reason why it is not. */
  #claim({ claim, nodeName }: Way, own: NodeBook): Promise<string | null> {
    const { leads, limits } = this.#options
    // Also when it is repeated after a conflict: a new leader would not look for a claim that comes later.
    return own.change((status) => (leads() ? withClaim(status, claim, limits(nodeName)) : NOT_LEADER))
  }

  /** Adds the claims of the other pods that the scheduler knows to the same write. */
  #claimAhead(nodeName: string, own: NodeBook): void {
    for (const other of this.#ways.values()) {
      if (other.nodeName !== nodeName || other.binding !== null || other.ahead !== null) continue
      const pod = this.#ungated(other)
      if (pod === null) continue
      other.ahead = this.#claim(other, own).then(
        (refused) => (refused === null ? pod : null),
        () => null,
      )
    }
  }

  /** Its VRAM may be given to others only after its claim. */
  async #giveUpAhead({ claim, nodeName, ahead }: Way): Promise<void> {
    const { book, leads } = this.#options
    if ((await ahead) === null) return
    await book(nodeName).change((status) => (leads() ? withoutClaim(status, claim.podUid) : NOT_LEADER))
  }

  /** Whether the binding was stored is not known until the pod has been changed. */
  async #afterFault(way: Way, fault: unknown): Promise<Bound> {
    const { book, leads, onFault } = this.#options
    onFault(fault)
    const { claim, nodeName } = way
    const failed: Bound = { error: errorText(fault), refused: PASSING('binding_failed') }
    // The claim belongs to the operator that leads now.
    for (let tries = 1; tries <= BIND_TRIES && leads(); tries += 1)
      try {
        const pod = await this.release(claim.podUid, keyOf(claim), book(nodeName))
        if (pod === null || pod.spec.nodeName === undefined) return failed
        await book(nodeName).change((status) => withAddedClaim(status, claim))
        return { error: null }
      } catch (error) {
        onFault(error)
      }
    return failed
  }

  /**
   * The pod without its gate, as it was last seen: a binding on a version that is out of date is refused, and
   * then the pod gets a new version.
   */
  #ungated({ claim, ungated }: Way): Pod | null {
    const copied = this.#options.pod(claim.podUid)
    const isCurrent = copied !== undefined && (copied.spec.schedulingGates ?? []).length === 0
    return isCurrent ? copied : ungated
  }

  #refused(podUid: string, candidates: readonly string[], why: string): FilterAnswer {
    const others = (this.#refusals.get(podUid) ?? []).filter((other) => other !== why)
    const latest = [...others, why].slice(-MAX_REFUSALS)
    // A pod that is gone, or that is not one of Headroom, may name its scheduler all the same.
    if (this.#options.pod(podUid) !== undefined) this.#refusals.set(podUid, latest)
    return refusal(candidates, why)
  }

  #end(way: Way, bound: Bound): void {
    if (this.#ways.get(way.claim.podUid) !== way) return
    way.cancel()
    this.#ways.delete(way.claim.podUid)
    if (way.ahead === null || way.binding !== null) return this.#tell(way, bound)
    void this.#giveUpAhead(way)
      .catch(this.#options.onFault)
      .finally(() => this.#tell(way, bound))
  }

  #tell({ done }: Way, bound: Bound): void {
    const isPassing = bound.error !== null && bound.refused.cause === 'passing'
    // Never inside a call of the one that is told.
    if (!isPassing || bound.refused.code === ABANDONED) queueMicrotask(() => done(bound))
    else this.#options.clock.at(this.#options.clock.now() + PAUSE_MS, () => done(bound))
  }

  /** Why the scheduler of Kubernetes last found no node; null: it has not tried. */
  #schedulerSaid(podUid: string): string | null {
    const { conditions = [] } = this.#options.pod(podUid)?.status ?? {}
    const said = conditions.find(({ type }) => type === 'PodScheduled')
    return said?.status === 'False' && said.reason === 'Unschedulable' ? (said.message ?? '') : null
  }
}

export function refusal(names: readonly string[], why: string): FilterAnswer {
  return { nodeNames: [], failed: Object.fromEntries(names.map((name) => [name, why])) }
}
