/**
 * What is wrong, then what to do. The server goes on asking, so that a change at the controller is enough.
 */
export function helloRefusal(reason: string): string {
  const why: Readonly<Record<string, string>> = {
    nvidia_in_trial:
      'its store is for trials and takes no NVIDIA GPUs. Use a controller with a live store (CONTROLLER_STORE_KIND)',
    simulated_in_live:
      'its store is live and takes no simulated GPUs. Use a controller with a trial store (CONTROLLER_STORE_KIND=trial)',
    wrong_sender:
      'the node id is not that of this broker key. Set NODE_NAME or NODE_ID as `headroom nats config` was given them',
  }
  return `the controller refuses this server: ${why[reason] ?? reason}`
}
