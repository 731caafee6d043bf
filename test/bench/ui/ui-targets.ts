/** Targets of the page (issue 6, "Must show"). */
import type { Target } from '../targets.ts'

export const UI_TARGETS = {
  first_page_ms: { unit: 'ms', floor: 1_000, aim: 500, better: 'lower' },
  page_rows: { unit: 'rows', floor: 150, aim: 100, better: 'lower' },
  first_tile_ms: { unit: 'ms', floor: 1_500, aim: 800, better: 'lower' },
  first_script_kib: { unit: 'KiB gzip', floor: 150, aim: 100, better: 'lower' },
  tick_ms: { unit: 'ms', floor: 16, aim: 10, better: 'lower' },
  tick_p99_ms: { unit: 'ms', floor: 50, aim: 25, better: 'lower' },
  tick_max_ms: { unit: 'ms', floor: 100, aim: 50, better: 'lower' },
  placement_p95_ms: { unit: 'ms', floor: 300, aim: 100, better: 'lower' },
  gantt_ms: { unit: 'ms', floor: 50, aim: 25, better: 'lower' },
  heap_growth_mib: { unit: 'MiB', floor: 20, aim: 5, better: 'lower' },
} as const satisfies Readonly<Record<string, Target>>

export type UiMeasure = keyof typeof UI_TARGETS
