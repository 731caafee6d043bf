/**
 * Which task was on which GPU when, and where its bytes were: bars for a Gantt chart. Reading does not
 * influence decisions, so the digest stays the same.
 */
import type { DurationMs, Residency } from '../../protocol/units.ts'
import type { Event } from '../../controller/model/event.ts'
import { idOfNode } from '../scenario/node-id.ts'
import type { World } from '../world/world.ts'

/** GPUs of the first nodes of the scenario: more rows are not readable. */
const MAX_GPUS = 32
/** Maximum number of bars. The rest of the run is omitted, and the chart marks this. */
const MAX_BARS = 4_000

/** `moving`: it starts, or is swapped in or out. */
type BarKind = 'resident' | 'moving' | 'out'

/** Columns, one entry per bar; times since the start of the run. */
interface Bars {
  /** Index in `gpus`. */
  readonly gpu: number[]
  /** Index in `tasks`. */
  readonly task: number[]
  readonly kind: BarKind[]
  readonly fromMs: DurationMs[]
  readonly toMs: DurationMs[]
}

/** Bounded in GPUs and bars. */
export interface RecordedResidency {
  /** `node / index`, in the order of the scenario. */
  readonly gpus: readonly string[]
  /** Number of all GPUs. */
  readonly gpuCount: number
  readonly endMs: DurationMs
  /** Bars after this time are omitted; null: none are. */
  readonly cutAtMs: DurationMs | null
  /** Names. */
  readonly tasks: readonly string[]
  readonly bars: Bars
}

interface Stay {
  readonly name: string
  /** Rows. */
  readonly gpus: readonly number[]
  kind: BarKind
  sinceMs: DurationMs
}

export class ResidencyRecorder {
  readonly #world: World
  /** By node id: the row of its GPU 0, and its number of rows. */
  readonly #rows = new Map<string, { readonly first: number; readonly count: number }>()
  readonly #gpus: string[] = []
  readonly #stays = new Map<string, Stay>()
  readonly #tasks = new Map<string, number>()
  readonly #bars: Bars = { gpu: [], task: [], kind: [], fromMs: [], toMs: [] }
  #cutAtMs: DurationMs | null = null

  /** Adds the tasks that are placed at the start of a world. */
  constructor(world: World) {
    this.#world = world
    for (const { id, name, gpus } of nodesOf(world)) {
      const count = Math.min(gpus, MAX_GPUS - this.#gpus.length)
      if (count <= 0) break
      this.#rows.set(id, { first: this.#gpus.length, count })
      for (let index = 0; index < count; index++) this.#gpus.push(`${name} / ${index}`)
    }
    for (const task of world.controller.views.placedTasks()) {
      const { placement } = task
      if (placement === null) continue
      this.#enter(
        task.spec.id,
        placement.node.id,
        placement.gpus.map(({ index }) => index),
        KINDS[placement.residency],
      )
    }
    world.listen((events) => events.forEach((event) => this.#saw(event)))
  }

  /** The run is over. */
  finish(): RecordedResidency {
    for (const stay of this.#stays.values()) this.#close(stay)
    this.#stays.clear()
    return {
      gpus: this.#gpus,
      gpuCount: nodesOf(this.#world).reduce((sum, { gpus }) => sum + gpus, 0),
      endMs: this.#world.nowMs,
      cutAtMs: this.#cutAtMs,
      tasks: [...this.#tasks.keys()],
      bars: this.#bars,
    }
  }

  #saw({ kind, taskId, nodeId, data }: Event): void {
    if (taskId === null) return
    if (kind === 'task_placed') this.#enter(taskId, nodeId ?? '', data['gpus'] as readonly number[], 'moving')
    if (kind === 'task_started') this.#turn(taskId, 'resident')
    if (kind === 'task_residency') this.#turn(taskId, KINDS[data['residency'] as Residency])
    if (kind === 'task_returned' || kind === 'task_finished') this.#leave(taskId)
  }

  #enter(taskId: string, nodeId: string, gpus: readonly number[], kind: BarKind): void {
    this.#leave(taskId)
    const rows = this.#rows.get(nodeId)
    if (rows === undefined) return
    const shown = gpus.filter((index) => index < rows.count).map((index) => rows.first + index)
    const name = this.#world.controller.views.openTask(taskId)?.spec.name ?? taskId
    if (shown.length > 0) this.#stays.set(taskId, { name, gpus: shown, kind, sinceMs: this.#world.nowMs })
  }

  #turn(taskId: string, kind: BarKind): void {
    const stay = this.#stays.get(taskId)
    if (stay === undefined || stay.kind === kind) return
    this.#close(stay)
    stay.kind = kind
    stay.sinceMs = this.#world.nowMs
  }

  #leave(taskId: string): void {
    const stay = this.#stays.get(taskId)
    if (stay === undefined) return
    this.#close(stay)
    this.#stays.delete(taskId)
  }

  #close({ name, gpus, kind, sinceMs }: Stay): void {
    const { nowMs } = this.#world
    if (this.#cutAtMs !== null || nowMs <= sinceMs) return
    if (this.#bars.gpu.length + gpus.length > MAX_BARS) {
      this.#cutAtMs = sinceMs
      return
    }
    const task = this.#tasks.get(name) ?? this.#tasks.size
    this.#tasks.set(name, task)
    for (const gpu of gpus) {
      this.#bars.gpu.push(gpu)
      this.#bars.task.push(task)
      this.#bars.kind.push(kind)
      this.#bars.fromMs.push(sinceMs)
      this.#bars.toMs.push(nowMs)
    }
  }
}

function nodesOf({
  plan,
}: World): readonly { readonly id: string; readonly name: string; readonly gpus: number }[] {
  return plan.nodes.map((node) => ({ id: idOfNode(node), name: node.name, gpus: node.gpuCount }))
}

const KINDS: Readonly<Record<Residency, BarKind>> = {
  none: 'moving',
  resident: 'resident',
  swapping_out: 'moving',
  swapped_out: 'out',
  swapping_in: 'moving',
}
