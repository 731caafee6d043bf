/** Copies of everything that the operator decides on. */
import type { Clock } from '../../controller/ports/clock.ts'
import type { RandomStream } from '../../controller/ports/random.ts'
import { NODE_LABELS, RUNTIME_LABEL, RUNTIME_VALUE } from '../contract/names.ts'
import { CLUSTER_GPU_POLICY, GPU_NODE, VENDOR_NODE_POLICY } from '../contract/policies.ts'
import {
  type KubeApi,
  type KubeObject,
  NAMESPACES,
  NODES,
  ownResource,
  PODS,
  PRIORITY_CLASSES,
} from '../ports/kube-api.ts'
import { type Change, Reflector } from './reflector.ts'

const KINDS = {
  pods: { kind: PODS, labelSelector: `${RUNTIME_LABEL}=${RUNTIME_VALUE}` },
  nodes: { kind: NODES, labelSelector: `${NODE_LABELS.enabled}=true` },
  namespaces: { kind: NAMESPACES },
  priorityClasses: { kind: PRIORITY_CLASSES },
  clusterPolicies: { kind: ownResource(CLUSTER_GPU_POLICY) },
  nodePolicies: { kind: ownResource(VENDOR_NODE_POLICY) },
  gpuNodes: { kind: ownResource(GPU_NODE) },
} as const
export type Copied = keyof typeof KINDS

export interface ClusterCopyOptions {
  readonly api: KubeApi
  readonly clock: Clock
  readonly random: RandomStream
  readonly onChange: (what: Copied, change: Change) => void
  readonly onFault: (error: unknown) => void
}

export class ClusterCopy {
  readonly #reflectors: Readonly<Record<Copied, Reflector>>
  readonly #synced: Promise<unknown>

  constructor({ api, clock, random, onChange, onFault }: ClusterCopyOptions) {
    const waits: Promise<void>[] = []
    const reflectors = (Object.keys(KINDS) as Copied[]).map((what) => {
      const synced = Promise.withResolvers<void>()
      waits.push(synced.promise)
      const reflector = new Reflector({
        ...{ api, clock, random, onFault, ...KINDS[what] },
        onChange: (change) => onChange(what, change),
        onSynced: synced.resolve,
      })
      return [what, reflector] as const
    })
    this.#reflectors = Object.fromEntries(reflectors) as Record<Copied, Reflector>
    this.#synced = Promise.all(waits)
  }

  /** Resolves when all first lists are there. */
  async start(): Promise<void> {
    for (const reflector of Object.values(this.#reflectors)) reflector.start()
    await this.#synced
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.#reflectors).map((reflector) => reflector.stop()))
  }

  /** Returns all objects, in no particular order. */
  all(what: Copied): readonly KubeObject[] {
    return [...this.#reflectors[what].objects.values()]
  }

  named(what: Exclude<Copied, 'pods'>, name: string): KubeObject | null {
    return this.#reflectors[what].objects.get(name) ?? null
  }
}
