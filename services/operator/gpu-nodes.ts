/**
 * The GPUNodes of a term. If the API server refuses a write of one, its node gets no pods until its claims
 * are settled and its report is stored; claims that could not be given up stay.
 */
import type { Clock } from '../../controller/ports/clock.ts'
import { NodeBook } from '../../operator/placing/node-book.ts'
import type { Bindings } from '../../operator/placing/pod-bindings.ts'
import type { KubeApi, KubeError } from '../../operator/ports/kube-api.ts'
import { inParallel } from '../in-parallel.ts'
import { bindingsSeen, dropStaleClaims, restoreClaims, storedBooks } from './claim-repair.ts'
import type { ClusterObjects } from './cluster-objects.ts'
import type { ObjectFaults } from './object-faults.ts'

export interface GpuNodesOptions {
  readonly api: KubeApi
  readonly objects: ClusterObjects
  readonly clock: Clock
  readonly faults: ObjectFaults
  readonly bindings: () => Bindings
  /** Whether this operator has bound the pod to the node; its copy of the pod may be behind. */
  readonly isBoundHere: (podUid: string, nodeName: string) => boolean
  readonly report: (nodeName: string) => Promise<unknown>
}

const NODES_AT_A_TIME = 16
const SERVER_FAULT = 500

export class GpuNodes {
  readonly #options: GpuNodesOptions
  readonly #books = new Map<string, NodeBook>()
  readonly #unsettled = new Set<string>()

  constructor(options: GpuNodesOptions) {
    this.#options = options
  }

  book(nodeName: string): NodeBook {
    const known = this.#books.get(nodeName)
    if (known !== undefined) return known
    const book = new NodeBook(this.#options.api, nodeName, this.#options.objects.gpuNode(nodeName))
    this.#books.set(nodeName, book)
    return book
  }

  /** Whether pods may be placed on the node. */
  isSettled(nodeName: string): boolean {
    return !this.#unsettled.has(nodeName)
  }

  /** Its report is not stored: the next repair tries again. */
  unsettle(nodeName: string): void {
    this.#unsettled.add(nodeName)
  }

  /** The GPUNode of a node that is gone, or lost its label, is deleted once no pod has a claim on it. */
  async remove(nodeName: string): Promise<void> {
    const book = this.book(nodeName)
    await book.removeWithoutClaims()
    if (this.#books.get(nodeName) === book) this.#books.delete(nodeName)
  }

  /** Rejects when the API server does not answer, or fails for each of these nodes. */
  async begin(declared: ReadonlySet<string>): Promise<void> {
    const { api, objects, clock } = this.#options
    for (const book of await storedBooks(api)) this.#books.set(book.nodeName, book)
    const faults: KubeError[] = []
    const behind: string[] = []
    await this.#each(declared, async (name) => {
      const fault = await this.#settled(name, declared.has(name), (uid) => behind.push(uid))
      if (fault === null) return
      this.#unsettled.add(name)
      faults.push(fault)
    })
    const isAny = [...declared].some((name) => this.isSettled(name))
    const [first] = faults
    if (!isAny && first !== undefined && faults.every(({ code }) => code >= SERVER_FAULT)) throw first
    await bindingsSeen(behind, objects, clock)
  }

  /**
   * Brings the claims to what the pods are. Resolves with the nodes that get pods again.
   * @param isHost whether the pods of the node have claims
   */
  async repair(isHost: (nodeName: string) => boolean): Promise<readonly string[]> {
    const settled: string[] = []
    await this.#each(this.#unsettled, async (name) => {
      const isUnsettled = !this.isSettled(name)
      if ((await this.#settled(name, isUnsettled, () => {})) !== null || !isUnsettled) return
      this.#unsettled.delete(name)
      settled.push(name)
    })
    const parts = { ...this.#options, book: (name: string) => this.book(name) }
    await restoreClaims(parts, isHost)
    return settled
  }

  #each(more: Iterable<string>, work: (nodeName: string) => Promise<void>): Promise<void> {
    const names = new Set([...more, ...this.#books.keys(), ...this.#options.objects.gpuNodeNames()])
    return inParallel(names, NODES_AT_A_TIME, work)
  }

  /** Resolves with the refusal; null: its claims are settled, and its report is stored. */
  async #settled(
    nodeName: string,
    isReported: boolean,
    onBehind: (podUid: string) => void,
  ): Promise<KubeError | null> {
    const { objects, isBoundHere, bindings, faults, report } = this.#options
    const parts = { objects, isBoundHere, bindings: bindings(), book: this.book(nodeName), onBehind }
    const fault = await faults.tried(`the claims of node ${nodeName}`, () => dropStaleClaims(parts))
    if (fault !== null || !isReported) return fault
    return faults.tried(`the report of node ${nodeName}`, () => report(nodeName))
  }
}
