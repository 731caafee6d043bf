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
   * Of the helper through which probes of swappable pods run: the kubelet would restart a container that is
   * swapped out and answers no probe. null: pods with such probes are not swapped.
   */
  readonly helperImage: string | null
  /** Of GPU pods that name none. */
  readonly runtimeClassName: string | null
}

export const DEFAULT_ADMISSION: AdmissionOptions = {
  observes: false,
  swapMemory: 'raise',
  helperImage: null,
  runtimeClassName: null,
}
