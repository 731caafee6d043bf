/** Targets of the REST API; each ratio is relative to a bare node:http server in the same run. */
import type { Target } from '../targets.ts'

export const REST_TARGETS = {
  post_task_ratio: { unit: '× bare POST', floor: 0.1, aim: 0.18, better: 'higher' },
  get_config_ratio: { unit: '× bare GET', floor: 0.7, aim: 0.9, better: 'higher' },
  sse_cpu_ratio: { unit: '× 1 reader', floor: 2, aim: 1.2, better: 'lower' },
  get_tasks_p99_ms: { unit: 'ms', floor: 25, aim: 10, better: 'lower' },
  series_step_ms: { unit: 'ms', floor: 20, aim: 5, better: 'lower' },
  series_memory_mib: { unit: 'MiB', floor: 300, aim: 240, better: 'lower' },
  series_week_cluster_ms: { unit: 'ms', floor: 200, aim: 50, better: 'lower' },
  series_week_gpus_ms: { unit: 'ms', floor: 200, aim: 50, better: 'lower' },
  series_day_nodes_ms: { unit: 'ms', floor: 200, aim: 100, better: 'lower' },
  simulating_p99_ratio: { unit: '× alone', floor: 2, aim: 1.3, better: 'lower' },
  list_bytes: { unit: 'B', floor: 100_000, aim: 100_000, better: 'lower' },
} as const satisfies Readonly<Record<string, Target>>

export type RestMeasure = keyof typeof REST_TARGETS
