/**
 * 10,000 GPUs on 1,250 nodes, two tasks on each GPU and 10,000 waiting tasks. Measures the cost of a reading
 * while they run, and its longest step; then the tables are filled with intervals in which everything differs
 * between GPUs and over time, stored in files, read back, and requested over a socket.
 */
import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createSeriesFiles } from '../../../controller/adapters/series-files.ts'
import { createMemoryStore } from '../../../controller/adapters/memory-store.ts'
import { createApi } from '../../../controller/api/server.ts'
import { createViews } from '../../../controller/query/live-views.ts'
import type { Clock } from '../../../controller/ports/clock.ts'
import type { Views } from '../../../controller/query/views.ts'
import { COLUMN, COLUMNS } from '../../../controller/series/columns.ts'
import { limitsOf, TABLE_KINDS, type TableKind } from '../../../controller/series/retention.ts'
import { packRow, type Row } from '../../../controller/series/row.ts'
import { Series } from '../../../controller/series/series.ts'
import type { SeriesTable } from '../../../controller/series/table.ts'
import { seededStream } from '../../../simulator/kernel/seeded-random.ts'
import { EngineCluster, requestOf } from '../engine-cluster.ts'
import { collectGarbage, median } from '../stopwatch.ts'
import type { Reading } from '../targets.ts'
import type { RestMeasure } from './rest-targets.ts'

const GPUS = 10_000
const NODES = 1_250
const TASKS = 30_000
const TASK_MIB = 15_000
/** Timed readings: 24 minutes of them, so that intervals of one and ten minutes are completed. */
const TICKS = 144
const ASKED = 20
const MIB = 1024 * 1024

/** Keeps the next planned callback, so that this bench can run and time it. */
class StepClock implements Clock {
  planned: { readonly at: number; readonly fn: () => void } | null = null

  now(): number {
    return views.now()
  }

  at(at: number, fn: () => void): () => void {
    this.planned = { at, fn }
    return () => {}
  }

  soon(): void {}
}

const folder = mkdtempSync(join(tmpdir(), 'headroom-bench-series-'))
const random = seededStream(1, 'bench/series')
const cluster = await EngineCluster.withNodes({ gpus: GPUS, config: {} })
for (let task = 0; task < TASKS; task++) {
  cluster.submit(requestOf(TASK_MIB))
  if (task % 1_000 === 999) cluster.settle()
}
cluster.reportStarts()
const views: Views = createViews(cluster.engine, cluster.clock, createMemoryStore().reads)
const sampling = await measureSampling()
const readings = [sampling, ...(await measureKept())]
rmSync(folder, { recursive: true })
process.send?.(readings, undefined, undefined, () => process.exit(0))

/** CPU time of this thread, unaffected by other processes. Exact only over many milliseconds. */
function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

async function measureSampling(): Promise<Reading<RestMeasure>> {
  const archive = createSeriesFiles({ dir: join(folder, 'sampled'), log: (line) => console.error(line) })
  const clock = new StepClock()
  const series = new Series(views)
  series.start(clock, archive)
  await series.ready
  const longest: number[] = []
  let steps = 0
  let cpuMs = 0
  for (let tick = 0; tick < TICKS; tick++) {
    cluster.passTime(10_000)
    const took: number[] = []
    const before = process.threadCpuUsage()
    while (clock.planned !== null && clock.planned.at <= views.now() + 1) {
      const startedAt = performance.now()
      clock.planned.fn()
      took.push(performance.now() - startedAt)
    }
    cpuMs += cpuMsSince(before)
    steps += took.length
    longest.push(Math.max(...took))
    await archive.close()
  }
  series.stop()
  const whole = `a reading takes ${(cpuMs / TICKS).toFixed(1)} ms in ${Math.round(steps / TICKS)} steps`
  const note =
    `the longest step of a reading, median of ${TICKS}; ${GPUS} GPUs, ${TASKS} tasks; ${whole}, the ` +
    `longest ever ${Math.max(...longest).toFixed(0)} ms`
  return { name: 'series_step_ms', value: median(longest), note }
}

async function measureKept(): Promise<readonly Reading<RestMeasure>[]> {
  const filled = new Series(views)
  filled.take()
  for (const kind of TABLE_KINDS) fill(filled.tables[kind])
  const dir = join(folder, 'kept')
  await keepAll(filled, dir)
  const before = memoryBytes()
  const series = new Series(views)
  const beforeCpu = process.threadCpuUsage()
  series.start(new StepClock(), createSeriesFiles({ dir, log: (line) => console.error(line) }))
  await series.ready
  const restoredMs = cpuMsSince(beforeCpu)
  const bytes = memoryBytes() - before
  const reach = (kind: TableKind) =>
    series.tables[kind].tiers
      .map((tier) => `${((tier.length * tier.slotMs) / 3_600_000).toFixed(1)} h`)
      .join(', ')
  console.log(
    `kept of nodes: ${reach('node')}; of GPUs: ${reach('gpu')}; of the cluster: ${reach('cluster')}; ` +
      `accounted ${(series.bytes / MIB).toFixed(0)} MiB; on disk ${(sizeOf(dir) / MIB).toFixed(0)} ` +
      `MiB; read back in ${restoredMs.toFixed(0)} ms of this thread`,
  )
  return [
    {
      name: 'series_memory_mib',
      value: bytes / MIB,
      note:
        `all tables full, every column different everywhere; read back in ${restoredMs.toFixed(0)} ms ` +
        'of this thread',
    },
    ...(await askAll(series)),
  ]
}

/** Intervals until now, as many as the tiers hold. */
function fill(table: SeriesTable): void {
  const scopes = table.scopes.size
  limitsOf(table.kind).forEach(({ slotMs, maxRows }, place) => {
    const values = new Float64Array(COLUMNS * scopes)
    const end = Math.floor(views.now() / slotMs) * slotMs
    let last: Row | undefined
    // Intervals that have since been dropped need not be created: no tier of many scopes keeps more.
    const rows = Math.min(maxRows, scopes > 100 ? 1_000 : maxRows)
    for (let row = rows; row > 0; row--) {
      change(values, scopes, slotMs, table.kind)
      last = packRow(end - row * slotMs, values, scopes, scopes, last)
      table.restore(place, last)
    }
  })
}

/**
 * Everything that can differ differs: times and residency in each interval, swaps of every hundredth GPU in
 * each 10 s.
 */
function change(values: Float64Array, scopes: number, slotMs: number, kind: TableKind): void {
  const gpus = kind === 'gpu' ? 1 : kind === 'node' ? GPUS / NODES : GPUS
  const readingsIn = slotMs / 10_000
  for (let i = 0; i < scopes; i++) {
    const set = (column: number, value: number) => (values[column * scopes + i] = Math.round(value))
    const knownMs = slotMs * gpus
    set(COLUMN.known, knownMs)
    set(COLUMN.busy, knownMs * random())
    set(COLUMN.served, knownMs * random())
    set(COLUMN.swap, 3 * knownMs * random())
    set(COLUMN.compute, 2 * knownMs * random())
    set(COLUMN.readings, readingsIn)
    set(COLUMN.vramReadings, readingsIn)
    for (const column of [COLUMN.physical, COLUMN.effective, COLUMN.limit])
      set(column, 81_920 * gpus * readingsIn)
    for (const column of [COLUMN.resident, COLUMN.committed, COLUMN.swapped])
      set(column, 81_920 * gpus * readingsIn * random())
    set(COLUMN.foreign, 500 * gpus * readingsIn)
    const swaps = random() < 0.01 * readingsIn * gpus ? Math.ceil(3 * random()) : 0
    for (const column of [COLUMN.swapOuts, COLUMN.swapIns]) set(column, swaps)
    for (const column of [COLUMN.outMib, COLUMN.inMib]) set(column, swaps * 20_000 * random())
  }
}

async function keepAll(series: Series, dir: string): Promise<void> {
  const { SeriesKeeper } = await import('../../../controller/series/keeper.ts')
  const archive = createSeriesFiles({ dir, log: (line) => console.error(line) })
  // An empty archive: after restoring, the tables report their rows.
  await new SeriesKeeper(archive).restore(series.tables, views.now())
  for (const kind of TABLE_KINDS) {
    const table = series.tables[kind]
    for (const [place, tier] of table.tiers.entries()) {
      for (const row of tier.rows(-Infinity, Infinity)) {
        table.onRow(place, row)
        await archive.close()
      }
    }
  }
}

async function askAll(series: Series): Promise<readonly Reading<RestMeasure>[]> {
  const app = createApi({ commands: cluster.engine.commands, views, series, version: 'bench' })
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const [node] = [...views.nodes()]
  const ask = async (name: RestMeasure, query: string): Promise<Reading<RestMeasure>> => {
    const took: number[] = []
    let bytes = 0
    let points = 0
    for (let i = 0; i < ASKED; i++) {
      const before = performance.now()
      const answer = await fetch(`${url}/api/v1/series?${query}`)
      const text = await answer.text()
      took.push(performance.now() - before)
      if (answer.status !== 200) throw new Error(text)
      bytes = text.length
      const { x, series: lines } = JSON.parse(text) as {
        x: number[]
        series: { values: (number | null)[] }[]
      }
      points = x.length
      if (!lines.every(({ values }) => values.some((value) => value !== null)))
        throw new Error(`${query} answers with nothing`)
    }
    return {
      name,
      value: median(took),
      note:
        `median of ${ASKED}, ${points} points, ${(bytes / 1000).toFixed(0)} kB; the longest ` +
        `${Math.max(...took).toFixed(0)} ms`,
    }
  }
  const parts =
    'utilization_percent,starvation_percent,starvation_queue_percent,starvation_swap_percent,' +
    'starvation_compute_percent'
  const answers = [
    await ask('series_week_cluster_ms', `names=${parts}&from=-7d&max_points=1008`),
    await ask(
      'series_week_gpus_ms',
      `scope=gpu:${node?.id}/*&names=utilization_percent,starvation_percent,vram_used_mib&from=-7d&` +
        'max_points=500',
    ),
    await ask('series_day_nodes_ms', 'scope=node:*&names=utilization_percent&from=-1d&max_points=144'),
  ]
  await app.close()
  return answers
}

function memoryBytes(): number {
  collectGarbage()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

function sizeOf(dir: string): number {
  return readdirSync(dir).reduce((sum, file) => sum + statSync(join(dir, file)).size, 0)
}
