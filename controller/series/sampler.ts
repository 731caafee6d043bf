/**
 * Reads the cluster once per base interval and writes the growth of its counters into the tables: at once, or
 * in parts for a large cluster, so that the event loop is not blocked. Each node's figures cover the time
 * between its own readings.
 */
import type { Instant } from '../../protocol/units.ts'
import type { Views } from '../query/views.ts'
import { ADDITIVE, COLUMN, COLUMNS } from './columns.ts'
import { intervalOf, newInterval, sumOfIntervals, type Interval } from './interval.ts'
import { gpuKey, NodeSampler, type Tables } from './node-sampler.ts'
import { QueueSampler } from './queue-sampler.ts'
import { BASE_SLOT_MS, TABLE_KINDS } from './retention.ts'
import type { WakeCounts } from './wake-counts.ts'

export const CLUSTER_KEY = 'cluster'

/** Number of nodes that are read, or scopes that are written, without a break: about a millisecond each. */
const NODES_A_STEP = 128
const SCOPES_A_STEP = 1_024

export class Sampler {
  readonly #views: Views
  readonly #tables: Tables
  readonly #nodes: NodeSampler
  readonly #queue: QueueSampler
  readonly #clusterRow = new Float64Array(COLUMNS)
  #at: Instant | null = null
  #lastInterval: Interval = newInterval()
  #isReading = false

  constructor(views: Views, tables: Tables, wakes: WakeCounts) {
    this.#views = views
    this.#tables = tables
    this.#nodes = new NodeSampler(views, tables, wakes)
    this.#queue = new QueueSampler(views, tables.group)
  }

  /** When the last reading ended; null before the first. */
  get readAt(): Instant | null {
    return this.#at
  }

  /** Growth found by the last reading. */
  get lastInterval(): Interval {
    return this.#lastInterval
  }

  /** Runs all steps at once. */
  take(): void {
    for (const _ of this.steps());
  }

  /**
   * Takes a reading, unless the base interval of the last one still runs or a reading is in progress. The
   * first one only sets the starting point.
   */
  *steps(): Generator<void, void> {
    const slotAt = Math.floor(this.#views.now() / BASE_SLOT_MS) * BASE_SLOT_MS
    if (this.#isReading || (this.#at !== null && slotAt <= this.#at)) return
    const isFirst = this.#at === null
    for (const table of Object.values(this.#tables)) table.clear()
    if (isFirst) this.#forgetStrangers()
    this.#isReading = true
    yield* this.#read(slotAt - BASE_SLOT_MS)
    this.#isReading = false
    this.#at = this.#views.now()
    this.#lastInterval = intervalOf(this.#clusterRow)
    if (!isFirst) yield* this.#commit(slotAt - BASE_SLOT_MS)
  }

  /** From the last reading until now. */
  sinceLast(): Interval {
    if (this.#at === null) return newInterval()
    const queueUs = this.#queue.sinceReadUs
    const queue = { counters: { ...newInterval().counters, demand: queueUs, queue: queueUs }, knownUs: 0 }
    return sumOfIntervals(
      queue,
      this.#nodes.sinceRead(),
      ...(this.#isReading ? [intervalOf(this.#clusterRow)] : []),
    )
  }

  *#read(slotAt: Instant): Generator<void, void> {
    const clusterRow = this.#clusterRow.fill(0)
    this.#queue.admit(slotAt)
    let nodes = 0
    for (const node of this.#views.nodes()) {
      const row = this.#nodes.read(node, slotAt)
      for (const c of ADDITIVE) clusterRow[c] = (clusterRow[c] as number) + (row[c] as number)
      if ((row[COLUMN.vramReadings] as number) > 0) clusterRow[COLUMN.vramReadings] = 1
      this.#queue.addNode(node.groups, row)
      nodes += 1
      if (nodes % NODES_A_STEP === 0) yield
    }
    if (nodes < this.#nodes.count) this.#nodes.forgetGone()
    this.#queue.read(clusterRow)
    clusterRow[COLUMN.readings] = 1
    const index = this.#tables.cluster.admit(CLUSTER_KEY, slotAt)
    if (index !== null) this.#tables.cluster.add(index, clusterRow)
  }

  *#commit(slotAt: Instant): Generator<void, void> {
    for (const kind of TABLE_KINDS) {
      const table = this.#tables[kind]
      if (table.scopes.size === 0) continue
      if (table.scopes.size >= SCOPES_A_STEP) yield
      table.commit(slotAt)
    }
  }

  /** Restored series of scopes that were removed while the controller was down. */
  #forgetStrangers(): void {
    const { group, node, gpu } = this.#tables
    for (const name of group.scopes.keys()) if (this.#views.group(name) === undefined) group.forget(name)
    for (const id of node.scopes.keys()) if (this.#views.node(id) === undefined) node.forget(id)
    const gpus = new Set<string>()
    for (const { id, gpus: own } of this.#views.nodes())
      for (const { index } of own) gpus.add(gpuKey(id, index))
    for (const key of gpu.scopes.keys()) if (!gpus.has(key)) gpu.forget(key)
  }
}
