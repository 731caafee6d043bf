import type { ConfigFields } from './config.ts'

/** The purpose of each field, one sentence each. */
export const CONFIG_MEANINGS: { readonly [K in keyof ConfigFields]: string } = {
  default_vram_overcommit_percent:
    'Cluster-wide extra VRAM headroom, as a percentage of physical VRAM, for swappable tasks',
  safety_reserve_mib: 'VRAM kept free on every GPU, MiB; a node may have its own',
  idle_swap_out_seconds: 'How long a task must leave the GPU alone before it may be swapped out',
  max_residency_seconds:
    'How long a non-P0 task may stay resident while it works and another waits for its VRAM; null is for ever',
  swap_in_aging_seconds: 'After how long a waiting swap-in ranks with P0',
  swap_in_probe_seconds:
    'How often a swapped-out task is brought back where nothing can signal that it wants the GPU',
  eager_swap_in_seconds:
    'How long a task must be out before it returns to free VRAM that no task waits for; null is never',
  stop_grace_seconds:
    'How long a task that is stopped has between SIGTERM and SIGKILL, unless it asks for another time',
  max_stop_grace_seconds: 'The longest stop grace that a task may ask for',
  reservation_after_seconds: 'After how long the head of a queue reserves the GPUs that it comes nearest to',
  queue_aging_seconds:
    'After how long a pending task is lifted by one priority class, each time; null is never',
  placement_strategy:
    'best_fit fills GPUs up, spread keeps them even, fifo lets nothing overtake the head of the queue',
  max_tasks_per_gpu: 'How many tasks may sit on one GPU, resident or not',
  max_requeues:
    'How many times a task that was submitted without a limit of its own is requeued after attempts that ended within 10 minutes; null is no limit',
  heartbeat_seconds: 'How often a GPU server reports',
  run_lease_seconds: 'How long tasks run on when their GPU server no longer hears the controller',
}
