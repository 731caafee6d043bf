/**
 * What must hold of each act of an operator at the moment when it acts. Other nets catch most of what an
 * operator does wrong here, before it has done harm: the claims, the versions of pods, and a new term.
 */
import { residentCapacityMib } from '../../../../controller/model/vram.ts'
import type { Pod } from '../../../../operator/contract/kubernetes.ts'
import { type Claim, GPU_NODE, type GPUNodeStatus } from '../../../../operator/contract/policies.ts'
import type { NodeLimits } from '../../../../operator/placing/claims.ts'
import type { KubeObject, ResourceKind, WriteOptions } from '../../../../operator/ports/kube-api.ts'
import type { Mib } from '../../../../protocol/units.ts'
import type { Operator } from '../../../../services/operator/operator.ts'

export interface LeaderFacts {
  readonly pods: ReadonlyMap<string, Pod>
  readonly gpuNodes: ReadonlyMap<string, KubeObject>
  readonly leases: ReadonlyMap<string, KubeObject>
}

/** One process of an operator. */
export interface Actor {
  readonly name: string
  readonly operator: Operator
  readonly process: { readonly isRunning: boolean }
  readonly api: { readonly faults: number }
}

interface SentBinding {
  readonly actor: Actor
  /** Its term. */
  readonly placement: Operator['placement']
  /** Failed requests of the process before it. */
  readonly faults: number
}

/** A binding counts as failed once it has failed, and each of four tries to give up its claim has. */
const MAX_LOST = 4
const CONTRADICTION = /^begins again: pod (\S+) is bound to/

export class LeaderJudge {
  readonly #facts: LeaderFacts
  readonly #say: (violation: string) => void
  /** The latest of each pod, by UID. */
  readonly #bindings = new Map<string, SentBinding>()

  constructor(facts: LeaderFacts, say: (violation: string) => void) {
    this.#facts = facts
    this.#say = say
  }

  /** Only the holder of the Lease acts, also if it has been stopped for a while. */
  acts({ name }: Pick<Actor, 'name'>, what: string): void {
    const holder = this.#holder
    if (holder !== name) this.#say(`${name} ${what}, although ${holder ?? 'no operator'} leads`)
  }

  sends(actor: Actor, kind: ResourceKind, object: KubeObject, { subresource }: WriteOptions = {}): void {
    if (subresource === 'binding') {
      this.acts(actor, `binds pod ${object.metadata.name}`)
      this.#bindings.set(object.metadata.uid ?? '', {
        ...{ actor, placement: actor.operator.placement, faults: actor.api.faults },
      })
    } else if (kind.kind === GPU_NODE.kind && subresource === 'status') this.#claims(actor, object)
  }

  /** An answer that is lost says nothing about whether the binding is stored. */
  notes(actor: Actor, line: string): void {
    const uid = CONTRADICTION.exec(line)?.[1] ?? ''
    const sent = this.#bindings.get(uid)
    if (sent?.actor === actor && actor.operator.isLeading && this.#isClear(sent))
      this.#say(`${actor.name} takes the binding of pod ${uid} for failed`)
  }

  /** @param actors all that run */
  bound({ metadata: { uid = '', name }, spec: { nodeName = '' } }: Pod, actors: readonly Actor[]): void {
    const leader = actors.find((actor) => actor.name === this.#holder)
    const placement = leader?.operator.placement ?? null
    if (leader?.process.isRunning !== true || placement === null || !leader.operator.isLeading) return
    const sent = this.#bindings.get(uid)
    if (sent?.actor === leader && !this.#isClear(sent)) return
    const place = placement.controller.views.openTask(uid)?.placement?.node.name
    if (place !== nodeName)
      this.#say(`pod ${name} is bound to ${nodeName}, and ${leader.name} has it on ${place ?? 'no node'}`)
  }

  /** It was sent in this term, and cannot count as failed yet. */
  #isClear({ actor, placement, faults }: SentBinding): boolean {
    return placement === actor.operator.placement && actor.api.faults - faults <= MAX_LOST
  }

  get #holder(): string | undefined {
    const [lease] = this.#facts.leases.values()
    return (lease?.['spec'] as { readonly holderIdentity?: string } | undefined)?.holderIdentity
  }

  /** Those of a write on an older version are not stored. */
  #claims(actor: Actor, { metadata, status }: KubeObject): void {
    const { name = '', resourceVersion } = metadata
    const stored = this.#facts.gpuNodes.get(name)
    if (stored === undefined || stored.metadata.resourceVersion !== resourceVersion) return
    const before = (stored['status'] ?? {}) as GPUNodeStatus
    const known = new Set(before.claims?.map(({ podUid }) => podUid))
    const { claims = [], gpus = [] } = (status ?? {}) as GPUNodeStatus
    for (const [place, claim] of claims.entries()) {
      const pod = this.#facts.pods.get(claim.podUid)
      if (known.has(claim.podUid) || pod === undefined || pod.spec.nodeName !== undefined) continue
      this.acts(actor, `claims VRAM for pod ${claim.podName}`)
      const limits = actor.operator.placement?.settings.limitsOf(name)
      if (limits === undefined) continue
      // A report in the same write may follow the claim.
      const foreignMib = (uuid: string): Mib =>
        Math.min(
          ...[before.gpus ?? [], gpus].map((each) => each.find((gpu) => gpu.uuid === uuid)?.foreignMib ?? 0),
        )
      const reported = gpus.map((gpu) => ({ ...gpu, foreignMib: foreignMib(gpu.uuid) }))
      this.#isWithin(name, { gpus: reported, claims }, place, limits)
    }
  }

  /** Specification 2.3 and 8, by what this operator knows itself. */
  #isWithin(
    name: string,
    { gpus = [], claims = [] }: GPUNodeStatus,
    place: number,
    limits: NodeLimits,
  ): void {
    const { podName, gpuUuids, swappable, vramMib } = claims[place] as Claim
    const { percent, reserveMib } = limits
    for (const { uuid, physicalMib, foreignMib } of gpus.filter((gpu) => gpuUuids.includes(gpu.uuid))) {
      const here = claims.slice(0, place + 1).filter((claim) => claim.gpuUuids.includes(uuid))
      const sizes = (movable: boolean) =>
        here.flatMap((each) => (each.swappable === movable ? [each.vramMib] : []))
      const fixedMib = sizes(false).reduce((sum, mib) => sum + mib, 0)
      const movableMib = sizes(true).reduce((sum, mib) => sum + mib, 0)
      const capacityMib = residentCapacityMib(physicalMib, reserveMib, foreignMib)
      const limitMib = percent === 0 ? capacityMib : Math.floor((physicalMib * (100 + percent)) / 100)
      // What others hold may keep earlier pods out already.
      const needMib = fixedMib + (swappable ? vramMib : Math.max(0, ...sizes(true)))
      if (needMib > capacityMib)
        this.#say(`${name} gets a claim of ${podName}: ${needMib} of the ${capacityMib} MiB of ${uuid}`)
      if (swappable && fixedMib + movableMib > limitMib)
        this.#say(`${name} gets a claim of ${podName} beyond the ${limitMib} MiB of ${uuid}`)
    }
  }
}
