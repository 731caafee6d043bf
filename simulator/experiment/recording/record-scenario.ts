/**
 * Converts a time range of a recording to a scenario. The recorded inputs pass through the controller until
 * the range begins; the cluster at that time is the fleet, and the observations up to its end are the
 * workload, the operator and the faults.
 */
import type { Event } from '../../../controller/model/event.ts'
import type { Task } from '../../../controller/model/placement.ts'
import type { Checkpoint, InputEntry } from '../../../controller/ports/recording-log.ts'
import type { ClusterSnapshot, SnapshotNode } from '../../../controller/ports/twin.ts'
import type { DurationMs, Instant } from '../../../protocol/units.ts'
import type { SwapProfile } from '../../scenario/swap-profiles.ts'
import type { SimTask } from '../../scenario/scenario.ts'
import { learnedModels } from '../../calibration/learned-models.ts'
import { ObservedSpeeds } from '../../calibration/observed-speeds.ts'
import { snapshotOf, type LeftOut } from '../../snapshot/snapshot.ts'
import { nodeNames } from '../../snapshot/node-names.ts'
import { snapshotText } from '../../snapshot/snapshot-text.ts'
import { ObservedFaults } from './observed-faults.ts'
import { ObservedWork } from './observed-work.ts'
import { operatorEntry } from './operator-entries.ts'
import type { Recorded } from './redecide.ts'
import { ReplayDivergence } from './replayed-ports.ts'
import type { ReplayedController } from './replayed-controller.ts'
import { ReplayedRun } from './replayed-run.ts'
import { requestOfSpec } from '../../../protocol/task-body.ts'

export interface RecordOptions {
  /** Null: when the first node is up. */
  readonly from: Instant | null
  /** Null: to the end of the recording. */
  readonly to: Instant | null
  readonly name: string
  /** Copy speed of GPUs if no copy was observed. */
  readonly swap?: SwapProfile
}

export interface RecordedScenario {
  readonly text: string
  readonly from: Instant
  readonly to: Instant
  readonly nodes: number
  readonly tasks: number
  readonly operator: number
  readonly faults: number
  readonly leftOut: LeftOut
}

/** Null: the recording has nothing in that range, or no node is up in it. */
export async function recordScenario(
  entries: AsyncIterable<Recorded> | Iterable<Recorded>,
  options: RecordOptions,
): Promise<RecordedScenario | null> {
  const taker = new RangeTaker(options)
  for await (const entry of entries) if (!(await taker.next(entry))) break
  return taker.result()
}

interface SeenTask {
  /** Null: it was present when the range began. */
  readonly submittedAt: Instant | null
  readonly request: SimTask['request']
  readonly work: ObservedWork
  cancelledAt: Instant | null
  isOver: boolean
}

class RangeTaker {
  readonly #o: RecordOptions
  readonly #run = new ReplayedRun()
  /** The cluster at the start of the range; null before. */
  #image: ClusterSnapshot | null = null
  /** Nodes that came up later, with their state at that time. */
  readonly #later = new Map<string, SnapshotNode>()
  readonly #tasks = new Map<string, SeenTask>()
  readonly #operator: { readonly at: Instant; readonly name: string; readonly args: readonly unknown[] }[] =
    []
  readonly #speeds: ObservedSpeeds
  #faults: ObservedFaults | null = null
  #lastAt: Instant = 0

  constructor(options: RecordOptions) {
    this.#o = options
    this.#speeds = new ObservedSpeeds(options.swap)
  }

  /** False: the range is over. */
  async next(entry: Recorded): Promise<boolean> {
    if (entry.k === 'checkpoint') await this.#recall(entry)
    else if (entry.k === 'start' || entry.k === 'commit') await this.#run.next(entry)
    else if (this.#o.to !== null && entry.at > this.#o.to) return false
    else await this.#take(entry)
    return true
  }

  /** Nodes that are up at that time were up before. */
  async #recall(checkpoint: Checkpoint): Promise<void> {
    await this.#run.recall(checkpoint)
    this.#lastAt = checkpoint.at
    if (this.#o.from === null && [...(this.#views?.nodes() ?? [])].some(({ status }) => status === 'up'))
      this.#takeImage(checkpoint.at)
  }

  get #views(): ReplayedController['controller']['views'] | undefined {
    return this.#run.controller?.controller.views
  }

  async #take(entry: InputEntry): Promise<void> {
    const isRestart = entry.k === 'loaded' && this.#image !== null
    this.#beginRange(entry.at)
    if (isRestart) this.#faults?.restarted(this.#lastAt, entry.at)
    if (this.#image !== null) this.#note(entry)
    const taken = await this.#run.next(entry)
    if (taken === null) return
    if (taken.course !== null) throw new ReplayDivergence(taken.course)
    const events = taken.recorded.flatMap((commit) => commit.events)
    this.#lastAt = entry.at
    if (
      this.#o.from === null &&
      events.some(({ kind, data }) => kind === 'node_status' && data['status'] === 'up')
    )
      this.#takeImage(entry.at)
    if (this.#image !== null) this.#look(entry.at, events)
  }

  /** The state at `from` is the one before the first later input. */
  #beginRange(at: Instant): void {
    if (this.#o.from !== null && at >= this.#o.from) this.#takeImage(this.#o.from)
  }

  #takeImage(at: Instant): void {
    const views = this.#views
    if (this.#image !== null || views === undefined) return
    this.#image = { ...views.snapshot(), at }
    this.#faults = new ObservedFaults(at)
    for (const task of views.openTasks()) this.#tasks.set(task.spec.id, seenTask(task, null))
  }

  #note(entry: InputEntry): void {
    if (entry.k === 'command') {
      if (entry.name === 'cancelTask') {
        const seen = this.#tasks.get(String(entry.args[0]))
        if (seen !== undefined) seen.cancelledAt ??= entry.at
      } else this.#operator.push({ at: entry.at, name: entry.name, args: entry.args })
    } else if (entry.k === 'message' && 'node_id' in entry.message.body) {
      this.#faults?.heard(String(entry.message.body.node_id), entry.message, entry.at)
    }
  }

  #look(at: Instant, events: readonly Event[]): void {
    const views = this.#views
    if (views === undefined) return
    for (const event of events) {
      const { kind, taskId, nodeId, data } = event
      const open = taskId === null ? undefined : views.openTask(taskId)
      this.#speeds.see(event, open?.placement ?? null)
      if (kind === 'task_submitted' && open !== undefined) this.#tasks.set(open.spec.id, seenTask(open, at))
      if (kind === 'task_finished' && taskId !== null) {
        const seen = this.#tasks.get(taskId)
        if (seen !== undefined) seen.isOver = seen.cancelledAt === null
      }
      if (kind !== 'node_status' || nodeId === null) continue
      const node = views.node(nodeId)
      if (data['status'] === 'suspect' && node !== undefined) this.#faults?.silent(nodeId, node.lastSeenAt)
      if (data['status'] === 'up' && !this.#later.has(nodeId)) {
        const image = views.snapshot().nodes.find(({ id }) => id === nodeId)
        if (image !== undefined) this.#later.set(nodeId, image)
      }
    }
    for (const task of views.placedTasks()) {
      const { placement } = task
      if (placement === null || placement.startedAt === null) continue
      const servedUs = views.taskCounters(task).served / task.spec.gpuCount
      this.#tasks
        .get(task.spec.id)
        ?.work.see({ attempt: task.attempt, wantsGpu: placement.wantsGpu, servedUs }, at)
    }
  }

  result(): RecordedScenario | null {
    const image = this.#image
    if (image === null) return null
    const { nodes } = image
    const upNow = new Set(nodes.filter(({ status }) => status === 'up').map(({ id }) => id))
    const joined = [...this.#later.values()].filter(({ id }) => !upNow.has(id))
    const fleet = [...nodes.filter(({ id }) => !this.#later.has(id) || upNow.has(id)), ...joined]
    if (!fleet.some(({ status }) => status === 'up')) return null
    const gpuModelOf = learnedModels(this.#speeds.all(), this.#o.swap)
    const since = (at: Instant): DurationMs => Math.max(0, at - image.at)
    const cancelAt = (at: Instant | null | undefined): DurationMs | null =>
      at === null || at === undefined ? null : since(at)
    const snapshot = snapshotOf(
      { ...image, nodes: fleet },
      {
        workLeftOf: ({ id }) => ({
          work: this.#tasks.get(id)?.work.work(this.#tasks.get(id)?.isOver === true) ?? NO_WORK,
          doneUs: 0,
        }),
        cancelAtOf: ({ id }) => cancelAt(this.#tasks.get(id)?.cancelledAt),
        gpuModelOf: ({ id }) => gpuModelOf(id),
      },
    )
    const names = nodeNames(fleet.filter(({ status }) => status === 'up'))
    const later = [...this.#tasks.values()].flatMap(
      ({ submittedAt, request, work, cancelledAt, isOver }): SimTask[] => {
        if (submittedAt === null) return []
        return [
          {
            at: since(submittedAt),
            request,
            work: work.work(isOver),
            allocSteps: [],
            cancelAt: cancelAt(cancelledAt),
          },
        ]
      },
    )
    const operator = this.#operator.flatMap(({ at, name, args }) => {
      const entry = operatorEntry(name, args, (id) => names.get(id))
      // The recording does not contain the answer, and a refused request is part of the run.
      return entry === null ? [] : [{ at: `${since(at)}ms`, ...entry, expect: null }]
    })
    const faults = this.#faults?.entries(names, this.#lastAt) ?? []
    const { name } = this.#o
    const description =
      `Recorded from ${new Date(image.at).toISOString()} to ` +
      `${new Date(this.#lastAt).toISOString()}; work as it was observed.`
    const untilMs = Math.max(1, since(this.#lastAt))
    const text = [
      ...snapshotText(snapshot, { name, description, untilMs, isCutOff: true, later, operator, faults }),
    ].join('')
    const counts = {
      nodes: snapshot.nodes.length,
      tasks: snapshot.tasks.length + later.length,
      operator: operator.length,
      faults: faults.length,
    }
    return { text, from: image.at, to: this.#lastAt, ...counts, leftOut: snapshot.leftOut }
  }
}

const NO_WORK = { kind: 'phases', phases: [[1, 0]] } as const

function seenTask({ spec }: Task, submittedAt: Instant | null): SeenTask {
  // As in a snapshot, without labels: they do not influence decisions.
  const request = requestOfSpec(spec)
  return { submittedAt, request, work: new ObservedWork(), cancelledAt: null, isOver: false }
}
