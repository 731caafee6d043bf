/** How admission changes pods; values of the Helm chart. */
import type { Percent } from '../../protocol/units.ts'

export interface AdmissionOptions {
  /** Nothing is changed or refused; warnings say what would be. */
  readonly observes: boolean
  /**
   * The driver copies VRAM into the memory of a swapped-out container. `raise`: its memory request and limit
   * grow by that much. `require`: its limit must be at least that. `ignore`: neither.
   */
  readonly swapMemory: 'raise' | 'require' | 'ignore'
  /**
   * Image of the helper through which probes of swappable pods run. Without it the kubelet would restart a
   * swapped-out container, which answers no probe. null: pods with such probes are not swapped.
   */
  readonly helperImage: string | null
  /** Runtime class of GPU pods that name none. */
  readonly runtimeClassName: string | null
  /** Overcommit of nodes without a policy or label. */
  readonly helmPercent: Percent
}

export const DEFAULT_ADMISSION: AdmissionOptions = {
  observes: false,
  swapMemory: 'raise',
  helperImage: null,
  runtimeClassName: null,
  helmPercent: 0,
}
