/**
 * What the operator knows from the agent of one node, and what it wants of it. It outlives a term, while no
 * other operator leads: a new term learns from the last report where the bytes of the pods are.
 */
import { isDeepStrictEqual } from 'node:util'
import type { AgentReport, PodReport, SwapMark } from '../../protocol/agent-messages.ts'
import { latestMarks } from '../../protocol/latest-marks.ts'
import type { CancelTimer, Clock } from '../../controller/ports/clock.ts'
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { DeclaredGpu } from './declared-gpus.ts'
import type { KeptMarks } from './swap-marks.ts'

export interface LinkedDevice {
  reported(report: AgentReport): void
}

export interface Order {
  readonly number: number
  readonly wanted: 'in' | 'out'
  /** For the agent to keep. */
  readonly marks: readonly SwapMark[]
}

/** Reports come each second. */
const SILENT_AFTER_MS = 15_000
/** A pod may be in use again since an older report. */
const CURRENT_MS = 5_000

export class AgentLink {
  device: LinkedDevice | null = null
  readonly #clock: Clock
  readonly #orders = new Map<string, Order>()
  #last: { readonly report: AgentReport; readonly pods: ReadonlyMap<string, PodReport> } | null = null
  #heardAt: Instant = 0
  #number = 0
  #latest: readonly SwapMark[] = []
  /** Ends of the waits in progress. */
  readonly #waits = new Set<() => void>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** It has reported within the last seconds. */
  get isHeard(): boolean {
    return this.#last !== null && this.#clock.now() - this.#heardAt < SILENT_AFTER_MS
  }

  /** The use of its pods is known. */
  get isCurrent(): boolean {
    return this.#last !== null && this.#clock.now() - this.#heardAt < CURRENT_MS
  }

  /** Null: it has never reported to this operator. */
  get hostSwapMib(): Mib | null {
    return this.#last?.report.host_swap_mib ?? null
  }

  /** Null: no agent has said which GPUs the node has. */
  get gpus(): readonly DeclaredGpu[] | null {
    const gpus = this.#last?.report.gpus
    return gpus?.map(({ uuid, model, vram_mib: vramMib }) => ({ uuid, model, vramMib })) ?? null
  }

  /** Null: it has not reported the GPU to this operator. */
  foreignMib(uuid: string): Mib | null {
    return this.#last?.report.gpus?.find((gpu) => gpu.uuid === uuid)?.foreign_mib ?? null
  }

  report(podUid: string): PodReport | undefined {
    return this.#last?.pods.get(podUid)
  }

  /** Returns true if the node has other GPUs than before. */
  take(report: AgentReport): boolean {
    const before = this.gpus
    this.#note([...(report.rounds ?? []), ...report.pods.flatMap(({ marks = [] }) => marks)])
    this.#last = { report, pods: new Map(report.pods.map((pod) => [pod.pod, pod])) }
    this.#heardAt = this.#clock.now()
    this.device?.reported(report)
    return !isDeepStrictEqual(before, this.gpus)
  }

  /** Later orders have greater numbers, those of an earlier operator included. */
  give(podUid: string, wanted: Order['wanted'], marks = this.#marksOf(podUid)): Order {
    this.#number = Math.max(this.#number + 1, this.#clock.now())
    const order = { number: this.#number, wanted, marks }
    this.#orders.set(podUid, order)
    this.#note(marks)
    this.wake()
    return order
  }

  order(podUid: string): Order | undefined {
    return this.#orders.get(podUid)
  }

  /** For the next term. An order is carried out, although the report after it has not arrived. */
  marks(): KeptMarks {
    const pods = new Set([...(this.#last?.pods.keys() ?? []), ...this.#orders.keys()])
    return { pods: new Map([...pods].map((pod) => [pod, this.#marksOf(pod)])), latest: this.#latest }
  }

  #note(marks: readonly SwapMark[]): void {
    if (marks.length > 0) this.#latest = latestMarks([...this.#latest, ...marks])
  }

  #marksOf(podUid: string): readonly SwapMark[] {
    return this.order(podUid)?.marks ?? this.report(podUid)?.marks ?? []
  }

  forget(podUid: string): void {
    this.#orders.delete(podUid)
  }

  /** Resolves at the next order, or after this time. */
  ordered(withinMs: DurationMs): Promise<void> {
    return new Promise((resolve) => {
      let cancel: CancelTimer = () => {}
      const end = (): void => {
        cancel()
        this.#waits.delete(end)
        resolve()
      }
      this.#waits.add(end)
      cancel = this.#clock.at(this.#clock.now() + withinMs, end)
    })
  }

  /** Ends all waits. */
  wake(): void {
    for (const end of [...this.#waits]) end()
  }
}
