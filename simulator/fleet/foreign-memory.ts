/**
 * VRAM that other processes use on a node's GPUs over time: processes that no GPU server started. They get
 * what is free at that instant, at most the amount in the scenario, and do not ask for more. The server
 * reports it to the controller at once; while less than the reserve is free it measures every second, and
 * swaps tasks out (R12).
 */
import type { DurationMs, Instant, Mib } from '../../protocol/units.ts'
import type { Clock } from '../../controller/ports/clock.ts'
import { RANK_DEVICE } from '../../controller/ports/clock.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { ForeignStep, ScenarioNode } from '../scenario/scenario.ts'

const MEASURED_EVERY_MS: DurationMs = 1000

/** The required part of a node. */
export interface ForeignHost {
  readonly gpuCount: number
  readonly physicalMib: Mib
  /** VRAM used by tasks on the GPU, by the server's account. */
  residentMib(gpu: number): Mib
  /** VRAM that must stay free. */
  reserveMib(): Mib
  setForeign(gpu: number, mib: Mib): void
  measure(gpu: number, freeMib: Mib): void
  /** The server reports its current VRAM. */
  report(): void
}

/** Current access to the nodes of a world; undefined while the server or machine is down. */
export interface ForeignTargets {
  serverOf(nodeId: string): ForeignServer | undefined
  deviceOf(nodeId: string): Pick<ForeignHost, 'setForeign' | 'measure'> | undefined
  reserveMib(nodeId: string): Mib
}

export interface ForeignServer {
  readonly attempts: ReadonlyMap<string, { readonly gpus: readonly number[]; readonly residentMib: Mib }>
  heartbeatNow(): void
}

/** Plans the foreign memory of all nodes. The clock is at the start. */
export function planForeignMemory(nodes: readonly ScenarioNode[], clock: Clock, cast: ForeignTargets): void {
  for (const node of nodes) {
    if (node.foreign !== undefined)
      void new ForeignMemory(clock, clock.now(), node.foreign, hostOf(node, cast))
  }
}

function hostOf(node: ScenarioNode, cast: ForeignTargets): ForeignHost {
  const {
    gpuCount,
    gpu: { vramMib },
  } = node
  const id = idOfNode(node)
  return {
    gpuCount,
    physicalMib: vramMib,
    residentMib(gpu) {
      let mib = 0
      for (const { gpus, residentMib } of cast.serverOf(id)?.attempts.values() ?? [])
        if (gpus.includes(gpu)) mib += residentMib
      return mib
    },
    reserveMib: () => cast.reserveMib(id),
    setForeign: (gpu, mib) => cast.deviceOf(id)?.setForeign(gpu, mib),
    measure: (gpu, freeMib) => cast.deviceOf(id)?.measure(gpu, freeMib),
    report: () => cast.serverOf(id)?.heartbeatNow(),
  }
}

export class ForeignMemory {
  readonly #clock: Clock
  readonly #host: ForeignHost
  readonly #heldMib: Mib[]
  /** GPUs that are measured repeatedly. */
  readonly #measured = new Set<number>()

  constructor(clock: Clock, startedAt: Instant, steps: readonly ForeignStep[], host: ForeignHost) {
    this.#clock = clock
    this.#host = host
    this.#heldMib = Array.from({ length: host.gpuCount }, () => 0)
    for (const step of steps) clock.at(startedAt + step.atMs, () => this.#take(step), RANK_DEVICE)
  }

  #take({ mib, gpus }: ForeignStep): void {
    for (const gpu of gpus ?? this.#heldMib.keys()) {
      const freeMib = Math.max(0, this.#host.physicalMib - this.#host.residentMib(gpu))
      this.#heldMib[gpu] = Math.min(mib, freeMib)
      this.#host.setForeign(gpu, this.#heldMib[gpu])
    }
    this.#host.report()
    for (const gpu of gpus ?? this.#heldMib.keys()) if (!this.#measured.has(gpu)) this.#measure(gpu)
  }

  /** Measures once a second until the reserve is free again. */
  #measure(gpu: number): void {
    this.#measured.delete(gpu)
    const freeMib = this.#host.physicalMib - this.#host.residentMib(gpu) - (this.#heldMib[gpu] ?? 0)
    if (freeMib >= this.#host.reserveMib()) return
    this.#host.measure(gpu, freeMib)
    this.#measured.add(gpu)
    this.#clock.at(this.#clock.now() + MEASURED_EVERY_MS, () => this.#measure(gpu), RANK_DEVICE)
  }
}
