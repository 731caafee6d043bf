/**
 * The measures, and how each is computed from the sums of an interval (semantics 6; docs/series.md has the
 * formulas).
 */
import { starvationPercent } from '../metrics/starvation.ts'
import { COLUMN, WAKE_BOUNDS_S, WAKE_COLUMNS, type ColumnName } from './columns.ts'
import type { TableKind } from './retention.ts'

export type Unit = 'percent' | 'MiB' | 'tasks' | 'swaps' | 'seconds'

/** Sums of an interval, by column. */
type Sums = (column: ColumnName) => number

export interface Measure {
  readonly unit: Unit
  readonly meaning: string
  /** The columns it is computed from. */
  readonly columns: readonly ColumnName[]
  /** The scopes it is defined for. */
  readonly kinds: readonly TableKind[]
  /** Null: unknown. */
  of(sums: Sums): number | null
}

const EVERYWHERE: readonly TableKind[] = ['cluster', 'group', 'node', 'gpu']
const WITH_A_QUEUE: readonly TableKind[] = ['cluster', 'group']

export const MEASURES = {
  utilization_percent: {
    unit: 'percent',
    meaning: 'Share of GPU time in which at least one kernel ran, over the GPUs that reported',
    columns: ['busy', 'known'],
    kinds: EVERYWHERE,
    of: (sums) => (sums('known') === 0 ? null : (100 * sums('busy')) / sums('known')),
  },
  starvation_percent: starvation('total', '(demand − served) / demand; the sum of its three parts'),
  starvation_queue_percent: starvation(
    'queue',
    'The part of demand that has not started; 0 for a node or GPU, because tasks do not queue there',
  ),
  starvation_swap_percent: starvation('swap', 'The part of demand that has started and is not resident'),
  starvation_compute_percent: starvation(
    'compute',
    'The part of demand that is resident and shares the GPU; an estimate on real GPUs',
  ),
  vram_physical_mib: vram('VRAM of the GPUs of nodes that are up', ['physical']),
  vram_used_mib: vram('Resident and foreign together', ['resident', 'foreign']),
  vram_resident_mib: vram('Held by tasks', ['resident']),
  vram_foreign_mib: vram('Held by processes that no GPU server started', ['foreign']),
  vram_committed_mib: vram('Committed to placed tasks, resident or swapped out', ['committed']),
  vram_effective_schedulable_mib: vram('Physical VRAM × (1 + overcommit percentage / 100), GPU by GPU', [
    'effective',
  ]),
  vram_commit_limit_mib: vram('Maximum VRAM that can be committed', ['limit']),
  vram_swapped_mib: vram('Demand of the tasks that are swapped out', ['swapped']),
  tasks_pending: level('Pending tasks', 'pending', WITH_A_QUEUE),
  tasks_waiting: level(
    'Pending tasks that could be placed: those that queue starvation counts',
    'waiting',
    WITH_A_QUEUE,
  ),
  vram_queue_length: level(
    'Returns, growths and placements that wait for VRAM in the queues of nodes',
    'entries',
    ['cluster', 'group', 'node'],
  ),
  swap_outs: moved('swaps', 'Swap-outs that ended in the interval', 'swapOuts'),
  swap_ins: moved('swaps', 'Swap-ins that ended in the interval', 'swapIns'),
  swap_out_mib: moved('MiB', 'VRAM moved by these swap-outs', 'outMib'),
  swap_in_mib: moved('MiB', 'VRAM moved by these swap-ins', 'inMib'),
  swap_copy_seconds: seconds('Duration of the copies that ended, out and in, summed over GPUs', ['copy']),
  wake_p50_seconds: wake(0.5),
  wake_p95_seconds: wake(0.95),
  wake_p99_seconds: wake(0.99),
  gpu_seconds_lost: seconds('GPU time that tasks wanted but did not get: demand − served', [
    'queue',
    'swap',
    'compute',
  ]),
} as const satisfies Readonly<Record<string, Measure>>

export type MeasureName = keyof typeof MEASURES
export const MEASURE_NAMES = Object.keys(MEASURES) as readonly MeasureName[]

function starvation(part: 'total' | 'queue' | 'swap' | 'compute', meaning: string): Measure {
  return {
    unit: 'percent',
    meaning,
    columns: ['known', 'served', 'queue', 'swap', 'compute'],
    kinds: EVERYWHERE,
    of: (sums) => {
      if (sums('known') === 0) return null
      const [served, queue, swap, compute] = [sums('served'), sums('queue'), sums('swap'), sums('compute')]
      return starvationPercent({
        demand: served + queue + swap + compute,
        served,
        queue,
        swap,
        compute,
        busy: 0,
      })[part]
    },
  }
}

/** A level is the mean of its readings. */
function vram(meaning: string, columns: readonly ColumnName[]): Measure {
  return {
    unit: 'MiB',
    meaning,
    columns: ['vramReadings', ...columns],
    kinds: EVERYWHERE,
    of: (sums) =>
      sums('vramReadings') === 0
        ? null
        : columns.reduce((sum, column) => sum + sums(column), 0) / sums('vramReadings'),
  }
}

function level(meaning: string, column: ColumnName, kinds: readonly TableKind[]): Measure {
  return {
    unit: 'tasks',
    meaning,
    columns: ['readings', column],
    kinds,
    of: (sums) => (sums('readings') === 0 ? null : sums(column) / sums('readings')),
  }
}

function moved(unit: Unit, meaning: string, column: ColumnName): Measure {
  return {
    unit,
    meaning,
    columns: ['readings', column],
    kinds: EVERYWHERE,
    of: (sums) => (sums('readings') === 0 ? null : sums(column)),
  }
}

function seconds(meaning: string, columns: readonly ColumnName[]): Measure {
  return {
    unit: 'seconds',
    meaning,
    columns: ['known', ...columns],
    kinds: EVERYWHERE,
    of: (sums) =>
      sums('known') === 0 ? null : columns.reduce((sum, column) => sum + sums(column), 0) / 1000,
  }
}

/** A quantile of the wakes that ended in the interval, by linear interpolation between the bounds. */
function wake(share: number): Measure {
  return {
    unit: 'seconds',
    meaning: `From request to swap-in: ${share * 100}% of the returning tasks took at most this long`,
    columns: WAKE_COLUMNS,
    kinds: ['cluster', 'group', 'node'],
    of: (sums) => quantileOf(WAKE_COLUMNS.map(sums), share),
  }
}

function quantileOf(counts: readonly number[], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return null
  let below = 0
  for (const [place, bound] of WAKE_BOUNDS_S.entries()) {
    const count = counts[place] ?? 0
    if (count > 0 && below + count >= share * total) {
      const from = WAKE_BOUNDS_S[place - 1] ?? 0
      return from + ((bound - from) * (share * total - below)) / count
    }
    below += count
  }
  return WAKE_BOUNDS_S.at(-1) ?? null
}

export const placesOf = (columns: Iterable<ColumnName>): readonly number[] =>
  [...columns].map((column) => COLUMN[column])
