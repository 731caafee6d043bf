/**
 * A stand-in for the scheduler of Kubernetes in virtual time: it asks the extender about pods without gates,
 * binds through it, and writes why a pod fits nowhere.
 */
import { byCodeUnits } from '../../../../controller/structures/order.ts'
import type { Extender } from '../../../../operator/adapters/extender-server.ts'
import type { Pod, PodCondition } from '../../../../operator/contract/kubernetes.ts'
import type { KubeApi } from '../../../../operator/ports/kube-api.ts'
import { PODS } from '../../../../operator/ports/kube-api.ts'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import type { Instant } from '../../../../protocol/units.ts'
import type { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import { unlessGone } from './virtual-kubelet.ts'

export interface SchedulerParts {
  readonly api: KubeApi
  readonly clock: VirtualClock
  readonly random: RandomStream
  readonly pods: () => Iterable<Pod>
  /** Nodes that exist. */
  readonly nodes: () => readonly string[]
  /** Asks the operator that leads. Not called if none answers. */
  readonly ask: (act: (extender: Extender) => void) => void
}

const EVERY_MS = 300
/** A pod that fitted nowhere is tried again after a change, or after this time. */
const AGAIN_MS = 60_000
const BIND_WITHIN_MS = 30_000

interface Tried {
  readonly facts: string
  readonly until: Instant
}

export class VirtualScheduler {
  /** Nodes without CPU or memory for more pods. */
  readonly unfit = new Set<string>()
  readonly #parts: SchedulerParts
  readonly #tried = new Map<string, Tried>()

  constructor(parts: SchedulerParts) {
    this.#parts = parts
    this.#next()
  }

  #next(): void {
    const { clock } = this.#parts
    clock.at(clock.now() + EVERY_MS, () => {
      this.#look()
      this.#next()
    })
  }

  #look(): void {
    const { pods, clock } = this.#parts
    const alive = new Set<string>()
    for (const pod of [...pods()]) {
      const { uid = '', deletionTimestamp, annotations } = pod.metadata
      alive.add(uid)
      if (pod.spec.nodeName !== undefined || (pod.spec.schedulingGates ?? []).length > 0) continue
      const facts = JSON.stringify([annotations, this.#fitting()])
      const tried = this.#tried.get(uid)
      if (deletionTimestamp !== undefined || (tried?.facts === facts && clock.now() < tried.until)) continue
      this.#tried.set(uid, { facts, until: clock.now() + AGAIN_MS })
      this.#try(pod)
    }
    for (const uid of this.#tried.keys()) if (!alive.has(uid)) this.#tried.delete(uid)
  }

  #fitting(): readonly string[] {
    return this.#parts.nodes().filter((name) => !this.unfit.has(name))
  }

  #try(pod: Pod): void {
    const { uid = '' } = pod.metadata
    const fitting = this.#fitting()
    const noCpu = this.#parts.nodes().filter((name) => this.unfit.has(name))
    const others = noCpu.length === 0 ? [] : [`${noCpu.length} Insufficient cpu`]
    if (fitting.length === 0) return void this.#refuse(pod, others)
    this.#parts.ask((extender) => {
      const { nodeNames, failed } = extender.filter(uid, fitting)
      const [node] = nodeNames
      if (node === undefined) {
        const whys = Object.values(failed)
        const counted = [...new Set(whys)].toSorted(byCodeUnits)
        const said = counted.map((why) => `${whys.filter((each) => each === why).length} ${why}`)
        return this.#later(() => void this.#refuse(pod, [...others, ...said]))
      }
      this.#later(() => this.#bind(uid, node))
    })
  }

  #bind(uid: string, node: string): void {
    const { clock, ask } = this.#parts
    const again = (ms: number): void => {
      this.#tried.set(uid, { facts: this.#tried.get(uid)?.facts ?? '', until: clock.now() + ms })
    }
    again(BIND_WITHIN_MS)
    ask((extender) => void extender.bind(uid, node).then((error) => error !== null && again(1_000)))
  }

  async #refuse(pod: Pod, reasons: readonly string[]): Promise<void> {
    const { api, pods, nodes } = this.#parts
    const { uid, name = '', namespace = '' } = pod.metadata
    const { metadata, spec, status } = [...pods()].find((each) => each.metadata.uid === uid) ?? pod
    const message = `0/${nodes().length} nodes are available: ${reasons.join(', ')}.`
    const conditions = status?.conditions ?? []
    const before = conditions.find(({ type }) => type === 'PodScheduled')
    if (before?.message === message || spec.nodeName !== undefined) return
    const said: PodCondition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }
    const kept = conditions.filter(({ type }) => type !== 'PodScheduled')
    const body = {
      metadata: { uid, resourceVersion: metadata.resourceVersion },
      status: { conditions: [...kept, said] },
    }
    await unlessGone(api.patch(PODS, { name, namespace }, { type: 'merge', body }, { subresource: 'status' }))
  }

  #later(act: () => void): void {
    const { clock, random } = this.#parts
    clock.at(clock.now() + 1 + Math.floor(random() * 20), act)
  }
}
