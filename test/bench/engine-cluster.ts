/**
 * The engine over a virtual clock and a memory store, with nodes that carry out commands at once: for benches
 * of decisions alone.
 */
import { createMemoryStore } from '../../controller/adapters/memory-store.ts'
import type { ConfigFields } from '../../controller/model/config.ts'
import type { Effect } from '../../controller/model/effect.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { Engine } from '../../controller/engine/engine.ts'
import type { LiveNode } from '../../controller/state/facts.ts'
import type { Store } from '../../controller/ports/store.ts'
import type { NodeEvent } from '../../protocol/messages.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { Mib } from '../../protocol/units.ts'
import { createSeededRandom } from '../../simulator/kernel/seeded-random.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'

/** An instant like that of a live controller. */
const START = Date.UTC(2026, 0, 1)
const GPUS_PER_NODE = 8
const VRAM_MIB: Mib = 40_960
/** Maximum resident VRAM: the capacity less the reserve. */
export const CAPACITY_MIB: Mib = VRAM_MIB - 2048

type StartEffect = Extract<Effect, { kind: 'start' }>

export interface EngineClusterOptions {
  readonly gpus: number
  readonly config: Partial<ConfigFields>
  /** Default: a memory store that receives every record, like a real one. */
  readonly store?: Store
}

export class EngineCluster {
  readonly clock = new VirtualClock(START)
  readonly engine: Engine
  placed = 0
  /** Placed, not yet reported as started. */
  readonly #starts: StartEffect[] = []
  #reports = 0

  constructor({ config, store = createMemoryStore({ retainFinished: false }) }: EngineClusterOptions) {
    this.engine = new Engine({
      clock: this.clock,
      random: createSeededRandom(1),
      store,
      initialConfig: config,
      taskLeaseMs: null,
      send: (effect) => {
        if (effect.kind === 'start') this.#starts.push(effect)
      },
      onEvents: (events) => {
        for (const event of events) if (event.kind === 'task_placed') this.placed += 1
      },
      onFault: (fault) => {
        throw fault
      },
    })
  }

  static async withNodes(options: EngineClusterOptions): Promise<EngineCluster> {
    const cluster = new EngineCluster(options)
    await cluster.engine.start()
    for (let i = 0; i < options.gpus / GPUS_PER_NODE; i++) cluster.#addNode(`n-${i}`)
    cluster.settle()
    return cluster
  }

  /** Runs everything that is due: the cycle, the commit, the answers. */
  settle(): void {
    this.clock.run(this.clock.now(), () => false)
  }

  passTime(ms: number): void {
    this.clock.run(this.clock.now() + ms, () => false)
    this.clock.advanceTo(this.clock.now() + ms)
  }

  submit(request: TaskRequest): void {
    this.engine.commands.submitTask(request, (answer) => {
      if (!answer.ok) throw new Error(`refused: ${JSON.stringify(answer.refusal)}`)
    })
  }

  /** The nodes report every ordered start; returns the tasks. */
  reportStarts(): StartEffect[] {
    const starts = this.#starts.splice(0)
    for (const start of starts)
      this.#report(start, { ...this.#head(start), kind: 'started', wants_gpu: true })
    this.settle()
    return starts
  }

  reportFinish(start: StartEffect): void {
    this.#report(start, {
      ...this.#head(start),
      kind: 'finished',
      outcome: 'completed',
      exit_code: 0,
      detail: null,
    })
  }

  #head(start: StartEffect): { n: number; task_id: string; attempt: number } {
    this.#reports += 1
    return { n: this.#reports, task_id: start.taskId, attempt: start.attempt }
  }

  #report(start: StartEffect, event: NodeEvent): void {
    this.engine.nodeEvents(
      this.engine.cluster.nodes.get(start.nodeId) as LiveNode,
      [event],
      event.n + 1,
      () => {},
    )
  }

  #addNode(name: string): void {
    const gpus = Array.from({ length: GPUS_PER_NODE }, (_, index) => ({
      index,
      model: 'A100-40',
      physical_mib: VRAM_MIB,
      foreign_mib: 0,
    }))
    const node_id = nodeIdFromName(name)
    const host_swap_mib = 2 * GPUS_PER_NODE * VRAM_MIB
    const hello = {
      op: 'hello',
      node_id,
      name,
      address: name,
      gpus,
      host_swap_mib,
      signals_wanted: true,
      device: 'simulated',
      allow_exec: true,
      tasks: [],
      finished_unacked: [],
    } as const
    this.engine.hello(hello, { counter: 1, random: 'bench' }, 1, () => {})
  }
}

const NO_LABELS = Object.freeze({})
const NO_GROUPS: readonly string[] = Object.freeze([])
const COMMAND: readonly string[] = Object.freeze(['python', 'train.py'])

/** A task without a name from its client, as is usual. */
export function requestOf(vramMib: Mib, fields: Partial<TaskRequest> = {}): TaskRequest {
  return {
    id: null,
    name: null,
    vramMib,
    gpuCount: 1,
    gpuMode: 'shared',
    noswap: 0,
    priority: 2,
    groups: NO_GROUPS,
    labels: NO_LABELS,
    owner: null,
    command: COMMAND,
    maxRuntimeSeconds: null,
    onNodeLoss: 'wait',
    ...fields,
  }
}
