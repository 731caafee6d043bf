/** Targets of the forwarding proxy, against nginx's stream module and a direct connection in the same run. */
import type { Target } from '../targets.ts'

export const PROXY_TARGETS = {
  upload_ratio: { unit: '× nginx', floor: 0.65, aim: 1, better: 'higher' },
  download_ratio: { unit: '× nginx', floor: 0.65, aim: 1, better: 'higher' },
  kept_p99_more_ms: { unit: 'ms', floor: 2, aim: 1, better: 'lower' },
  new_p99_more_ms: { unit: 'ms', floor: null, aim: 2, better: 'lower' },
  held_1000_rss_mib: { unit: 'MiB', floor: 100, aim: 50, better: 'lower' },
} as const satisfies Readonly<Record<string, Target>>

export type ProxyMeasure = keyof typeof PROXY_TARGETS
