/** Targets of the operator on a real API server; ratios are relative to schedulers of the same run. */
import type { Target } from '../targets.ts'

export const KUBERNETES_TARGETS = {
  bind_rate_ratio: { unit: '× stock', floor: 0.5, aim: 0.78, better: 'higher' },
  operator_cpu_ratio: { unit: '× kube-scheduler', floor: 1, aim: 0.5, better: 'lower' },
  writes_per_pod: { unit: '', floor: 5, aim: 5, better: 'lower' },
  operator_rss_mib: { unit: 'MiB', floor: 400, aim: 300, better: 'lower' },
  relist_s: { unit: 's', floor: 5, aim: 2, better: 'lower' },
} as const satisfies Readonly<Record<string, Target>>

export type KubernetesMeasure = keyof typeof KUBERNETES_TARGETS
