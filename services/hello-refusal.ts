/**
 * Says what is wrong, then what to do. The server repeats its hello, so that a change at the controller is
 * enough.
 */
export function helloRefusal(reason: string): string {
  const why: Readonly<Record<string, string>> = {
    nvidia_in_trial:
      'its store is a trial store, which accepts no NVIDIA GPUs. Use a controller with a live store ' +
      '(CONTROLLER_STORE_KIND)',
    simulated_in_live:
      'its store is a live store, which accepts no simulated GPUs. Use a controller with a trial store ' +
      '(CONTROLLER_STORE_KIND=trial)',
    wrong_sender:
      'the node ID does not belong to this broker key. Set NODE_NAME or NODE_ID as given to `headroom ' +
      'nats config`',
  }
  return `the controller refuses this server: ${why[reason] ?? reason}`
}
