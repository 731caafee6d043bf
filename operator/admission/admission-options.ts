/** How admission changes pods; values of the Helm chart. */
export interface AdmissionOptions {
  /** Nothing is changed or refused; warnings say what would be. */
  readonly observes: boolean
  /**
   * The driver copies VRAM into the memory of a swapped-out container. `raise`: its memory request and limit
   * grow by that much. `require`: its limit must be at least that. `ignore`: neither.
   */
  readonly swapMemory: 'raise' | 'require' | 'ignore'
  /**
   * A container that is swapped out answers no probe, and the kubelet would restart it. `rewrite`: probes run
   * through a helper that succeeds meanwhile. `noswap`: pods with such probes are not swapped.
   */
  readonly probes: 'rewrite' | 'noswap'
  /** Of the helper; required for `rewrite`. */
  readonly helperImage: string | null
  /** Of GPU pods that name none. */
  readonly runtimeClassName: string | null
}

export const DEFAULT_ADMISSION: AdmissionOptions = {
  observes: false,
  swapMemory: 'raise',
  probes: 'noswap',
  helperImage: null,
  runtimeClassName: null,
}
