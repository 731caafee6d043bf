import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { COLUMN, type ColumnName } from '../../controller/series/columns.ts'
import { addColumn } from '../../controller/series/row.ts'
import { Series } from '../../controller/series/series.ts'
import type { SeriesTable } from '../../controller/series/table.ts'
import type { World } from '../../simulator/world/world.ts'
import { worldArb } from '../support/world-arbitraries.ts'
import { busyFor, MINUTE, node, play, task, type WorldCase } from '../support/world-builder.ts'

const SEED = Number(process.env['HEADROOM_SEED'] ?? 20_260_412)

/**
 * Plays the case and takes a reading at every step that passes the end of an interval; calls `onReading` for
 * each.
 */
async function sampled(
  world: WorldCase,
  onReading: (world: World, isFirst: boolean) => void = () => {},
): Promise<{ series: Series; digest: string | null }> {
  let series: Series | null = null
  let known = -1
  const run = await play(world, {
    isJournalOff: false,
    untilMs: 2 * 60 * MINUTE,
    onStep: (at) => {
      series ??= new Series(at.controller.views)
      series.take()
      const rows = series.tables.cluster.tiers[0]?.length ?? 0
      if (rows === known) return
      onReading(at, known < 0)
      known = rows
    },
  })
  return { series: series as unknown as Series, digest: run.world.digest() }
}

/** Sums over all scopes or one scope, over all base intervals. */
function total(table: SeriesTable, column: ColumnName, key?: string): number {
  const indexes = Int32Array.from(
    [...table.scopes].filter(([each]) => key === undefined || each === key).map(([, { index }]) => index),
  )
  const sums = new Float64Array(indexes.length)
  for (const row of table.tiers[0]?.rows(-Infinity, Infinity) ?? [])
    addColumn(row, COLUMN[column], indexes, sums, 0)
  return sums.reduce((sum, value) => sum + value, 0)
}

describe('the series of a simulated world', () => {
  it('add up to the growth of the counters in every scope, and change no decision', async () => {
    const property = fc.asyncProperty(
      worldArb({ hasGrowth: true, isHot: true, maxTasks: 8 }),
      async (world) => {
        const seen: { counters: Record<string, number>; swaps: Record<string, number> }[] = []
        const { series, digest } = await sampled(world, ({ controller: { views } }) => {
          const { swapOuts, swapIns, swappedOutMibTotal: outMib, swappedInMibTotal: inMib } = views.totals()
          seen.push({ counters: { ...views.clusterCounters() }, swaps: { swapOuts, swapIns, outMib, inMib } })
        })
        const { cluster, node: nodes, gpu: gpus } = series.tables
        const [first, last] = [seen[0], seen.at(-1)]
        for (const name of ['busy', 'served', 'swap', 'compute', 'queue'] as const) {
          const grown = ((last?.counters[name] ?? 0) - (first?.counters[name] ?? 0)) / 1000
          expect(total(cluster, name), name).toBe(grown)
          if (name === 'queue') continue
          expect(total(nodes, name), name).toBe(grown)
          expect(total(gpus, name), name).toBe(grown)
        }
        for (const name of ['swapOuts', 'swapIns', 'outMib', 'inMib'] as const) {
          const grown = (last?.swaps[name] ?? 0) - (first?.swaps[name] ?? 0)
          expect(total(cluster, name), name).toBe(grown)
          expect(total(nodes, name), name).toBe(grown)
          if (name.endsWith('Mib')) expect(total(gpus, name), name).toBe(grown)
        }
        const unwatched = await play(world, { isJournalOff: false, untilMs: 2 * 60 * MINUTE })
        expect(digest).toBe(unwatched.world.digest())
      },
    )
    await fc.assert(property, { seed: SEED, numRuns: 25 })
  })

  it('count waiting tasks separately for a group and for the cluster', async () => {
    const fills = { vramMib: 1000, noswap: 1 } as const
    const { series } = await sampled(
      {
        nodes: [node({ name: 'a', groups: ['g'] }), node({ name: 'b' })],
        tasks: [
          task({ id: 'in-g', groups: ['g'], ...fills, work: busyFor(MINUTE) }),
          task({ id: 'anywhere', ...fills, work: busyFor(2 * MINUTE) }),
          task({ id: 'waits-for-g', at: 1, groups: ['g'], ...fills, work: busyFor(4 * MINUTE) }),
          task({ id: 'waits', at: 1, ...fills, work: busyFor(3 * MINUTE) }),
          task({ id: 'never-fits', at: 1, groups: ['g'], ...fills, vramMib: 5000 }),
          // Something happens every ten seconds, so that readings are taken then.
          ...Array.from({ length: 18 }, (_, i) =>
            task({ id: `tick-${i}`, at: (i + 1) * 10_000, vramMib: 5000 }),
          ),
        ],
      },
      () => {},
    )
    const { cluster, group } = series.tables
    expect(total(group, 'queue', 'g')).toBe(MINUTE - 1)
    expect(total(cluster, 'queue')).toBe(MINUTE - 1 + 2 * MINUTE - 1)
    expect(total(group, 'busy', 'g')).toBe(
      total(series.tables.node, 'busy', [...series.tables.node.scopes.keys()][0]),
    )
    // Six readings while it waits, the last one before its start at that instant; the task that never fits is
    // pending in all of them and waits in none.
    expect(total(group, 'waiting', 'g')).toBe(6)
    expect(total(group, 'pending', 'g')).toBe(total(group, 'readings', 'g') + 6)
  })
})
