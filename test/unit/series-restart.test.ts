import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createSeriesFiles } from '../../controller/adapters/series-files.ts'
import type { SeriesArchive } from '../../controller/ports/series-archive.ts'
import type { Views } from '../../controller/query/views.ts'
import { CLUSTER, type ScopeRef } from '../../controller/series/query.ts'
import type { MeasureName } from '../../controller/series/measures.ts'
import { SLOT_MS } from '../../controller/series/retention.ts'
import { Series } from '../../controller/series/series.ts'
import { VirtualClock } from '../../simulator/kernel/virtual-clock.ts'
import { FakeController, NODE_ID } from '../support/api-world.ts'
import { MemoryArchive } from '../support/memory-archive.ts'

const START = Date.UTC(2026, 0, 2, 3)
const OTHER_ID = '5f0c9a52-1d3e-4b7a-9c11-000000000002'
const minutes = (count: number) => count * 60_000

const root = mkdtempSync(join(tmpdir(), 'headroom-series-'))
afterAll(() => rmSync(root, { recursive: true }))

function memoryOpener(): () => SeriesArchive {
  const archive = new MemoryArchive()
  return () => archive
}

function filesOpener(): () => SeriesArchive {
  return () => createSeriesFiles({ dir: join(root, 'kept'), log: (line) => expect.fail(line) })
}

/** A controller over an archive that survives it; the counters of each run begin at 0. */
class Life {
  readonly world = new FakeController()
  readonly clock: VirtualClock
  readonly series: Series

  constructor(startAt: number) {
    this.clock = new VirtualClock(startAt)
    const { clock } = this
    const views: Views = { ...this.world.views, now: () => clock.now() }
    this.series = new Series(views)
  }

  static async begin(
    archive: SeriesArchive,
    startAt: number,
    nodeIds: readonly string[] = [NODE_ID],
  ): Promise<Life> {
    const life = new Life(startAt)
    for (const id of nodeIds) await life.world.addNode({ id, gpus: 1, physicalMib: 40_000 })
    life.series.start(life.clock, archive)
    await life.series.ready
    return life
  }

  /** The first GPU is always busy. */
  run(ms: number): void {
    for (let past = 0; past < ms; past += 1_000) {
      const { counters } = this.world
      this.world.counters = {
        ...counters,
        busy: counters.busy + 1_000_000,
        served: counters.served + 1_000_000,
        demand: counters.demand + 1_000_000,
      }
      const until = this.clock.now() + 1_000
      this.clock.run(until, () => false)
      this.clock.advanceTo(until)
    }
  }

  values(
    name: MeasureName,
    from: number,
    to: number,
    points: number,
    scope: ScopeRef = CLUSTER,
  ): readonly (number | null)[] {
    return (
      this.series.answer({ names: [name], scopes: [scope], from, to, maxPoints: points }).columns[0]
        ?.values ?? []
    )
  }
}

describe('series after a restart', () => {
  test.each([
    ['memory', memoryOpener],
    ['files', filesOpener],
  ])('in %s are unchanged, and unknown instead of 0 for the time without a controller', async (_, opener) => {
    const open = opener()
    const archive = open()
    const nodeIds = Array.from({ length: 40 }, (_each, i) => `node-${i}`)
    const first = await Life.begin(archive, START, nodeIds)
    first.run(minutes(4))
    await archive.close()
    const reopened = open()
    const second = await Life.begin(reopened, START + minutes(9), nodeIds)
    second.run(minutes(3))
    await reopened.close()
    expect(second.values('utilization_percent', START, START + minutes(12), 12)).toEqual([
      ...[2.5, 2.5, 2.5, 2.5],
      ...[null, null, null, null, null],
      ...[2.5, 2.5, 2.5],
    ])
    const busy: ScopeRef = { kind: 'gpu', key: 'node-0/0' }
    expect(second.values('utilization_percent', START + minutes(3), START + minutes(10), 7, busy)).toEqual([
      100,
      ...Array<null>(5).fill(null),
      100,
    ])
    // A coarser interval with a gap covers only the known part.
    expect(second.values('utilization_percent', START, START + minutes(20), 2)).toEqual([2.5, 2.5])
  })

  test('complete the coarser intervals that were in progress at the kill', async () => {
    const archive = new MemoryArchive()
    let life = await Life.begin(archive, START + 5_000)
    for (let kill = 0; kill < 20; kill++) {
      life.run(37_000)
      life = await Life.begin(archive, life.clock.now())
    }
    life.run(minutes(60))
    const { tiers } = life.series.tables.cluster
    const sumOf = (place: number) => {
      const rows = tiers[place]?.rows(START, START + minutes(60)) ?? []
      return rows.reduce((sum, row) => sum + (row.dense?.[0] ?? NaN), 0)
    }
    expect(tiers.map((tier) => tier.slotMs)).toEqual(SLOT_MS)
    expect(sumOf(1)).toBe(sumOf(0))
    expect(sumOf(2)).toBe(sumOf(0))
    expect(sumOf(3)).toBe(sumOf(0))
    // Each kill cost at most the base interval in which it happened.
    expect(sumOf(0)).toBeGreaterThan(minutes(60) - 20 * 10_000)
  })

  test('belong to their scope, also if nodes are reordered or removed', async () => {
    const archive = new MemoryArchive()
    const first = await Life.begin(archive, START, [NODE_ID, OTHER_ID])
    first.run(minutes(2))
    // The first node in the list is the busy one.
    const second = await Life.begin(archive, first.clock.now(), [OTHER_ID, NODE_ID])
    second.run(minutes(2))
    const third = await Life.begin(archive, second.clock.now(), [OTHER_ID])
    const of = (id: string) =>
      third.values('utilization_percent', START, START + minutes(4), 4, { kind: 'node', key: id })
    expect(of(OTHER_ID)).toEqual([0, 0, 100, 100])
    expect([...third.series.tables.node.scopes.keys()]).toEqual([OTHER_ID])
    expect([...third.series.tables.gpu.scopes.keys()]).toEqual([`${OTHER_ID}/0`])
    const fourth = await Life.begin(archive, third.clock.now(), [NODE_ID, OTHER_ID])
    expect(
      fourth.values('utilization_percent', START, START + minutes(4), 4, {
        kind: 'gpu',
        key: `${NODE_ID}/0`,
      }),
    ).toEqual([100, 100, 0, 0])
  })

  test('lose only values with a future time after a clock was set back', async () => {
    const archive = new MemoryArchive()
    const early = await Life.begin(archive, START)
    early.run(minutes(2))
    const ahead = await Life.begin(archive, START + minutes(100))
    ahead.run(minutes(5))
    const back = await Life.begin(archive, START + minutes(2))
    back.run(minutes(2))
    const later = await Life.begin(archive, START + minutes(200))
    expect(later.values('utilization_percent', START, START + minutes(4), 4)).toEqual([100, 100, 100, 100])
  })

  test.each([31, 400, 1095])(
    'keep their history after a start with a clock that is off by %i days in both directions',
    async (days) => {
      const archive = new MemoryArchive()
      const first = await Life.begin(archive, START)
      first.run(minutes(4))
      for (const off of [days, -days]) {
        const wrong = await Life.begin(archive, START + minutes(4) + off * 24 * minutes(60))
        wrong.run(minutes(2))
      }
      const right = await Life.begin(archive, START + minutes(4))
      expect(right.values('utilization_percent', START, START + minutes(4), 4)).toEqual([100, 100, 100, 100])
      right.run(minutes(2))
      const later = await Life.begin(archive, START + minutes(6))
      expect(later.values('utilization_percent', START, START + minutes(6), 6)).toEqual(Array(6).fill(100))
    },
  )

  test('are complete even if a client reads the last minute while they are loaded', async () => {
    const archive = new MemoryArchive()
    const first = await Life.begin(archive, START)
    first.run(minutes(3))
    const second = new Life(first.clock.now())
    await second.world.addNode({ id: NODE_ID, gpus: 1, physicalMib: 40_000 })
    second.series.start(second.clock, archive)
    second.series.take()
    expect(second.series.lastMinute()).toBeNull()
    await second.series.ready
    second.run(minutes(1))
    const node: ScopeRef = { kind: 'node', key: NODE_ID }
    expect(second.values('utilization_percent', START, START + minutes(4), 4, node)).toEqual([
      100, 100, 100, 100,
    ])
    expect(second.series.lastMinute()?.counters.busy).toBe(60_000_000)
  })

  test('start despite an archive with records of another version', async () => {
    const archive = new MemoryArchive()
    const first = await Life.begin(archive, START)
    first.run(minutes(2))
    for (const segments of archive.logs.values()) {
      segments.unshift({
        at: 0,
        records: [
          Uint8Array.of(),
          Uint8Array.of(9, 9, 9),
          new TextEncoder().encode('\u0002{"not":"scopes"}'),
        ],
      })
    }
    const second = await Life.begin(archive, first.clock.now())
    expect(second.values('utilization_percent', START, START + minutes(2), 2)).toEqual([100, 100])
  })

  test('need a bounded amount of memory and archive over time', async () => {
    const archive = new MemoryArchive()
    const life = await Life.begin(archive, START)
    const logSize = () =>
      [...archive.logs.values()].reduce(
        (sum, segments) => sum + segments.reduce((own, { records }) => own + records.length, 0),
        0,
      )
    for (let hour = 0; hour < 8; hour++) life.run(minutes(60))
    const [bytes, records] = [life.series.bytes, logSize()]
    const finest = life.series.tables.cluster.tiers[0]
    expect(finest?.length).toBe((6 * 3_600_000) / 10_000)
    life.run(minutes(120))
    expect(life.series.bytes).toBeLessThan(bytes * 1.2)
    expect(logSize()).toBeLessThan(records * 1.2)
  })
})
