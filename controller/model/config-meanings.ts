import type { ConfigFields } from './config.ts'

/** The purpose of each field, one sentence each. */
export const CONFIG_MEANINGS: { readonly [K in keyof ConfigFields]: string } = {
  default_vram_overcommit_percent:
    'Cluster-wide extra VRAM headroom, as a percentage of physical VRAM, for swappable tasks',
  safety_reserve_mib: 'VRAM kept free on every GPU, MiB; nodes can override it',
  idle_swap_out_seconds: 'How long a task must be idle before it may be swapped out',
  max_residency_seconds:
    'How long a non-P0 task may stay resident while it works and another waits for its VRAM; null: no limit',
  swap_in_aging_seconds: 'How long a swap-in waits before it ranks with P0',
  swap_in_probe_seconds:
    'How long a task stays swapped out before it is probed, where nothing can signal that it wants the GPU',
  eager_swap_in_seconds:
    'How long a task stays swapped out before it returns to free VRAM that no task waits for; null: never',
  stop_grace_seconds:
    'Time between SIGTERM and SIGKILL for a task that is stopped, unless the task sets its own',
  max_stop_grace_seconds: 'Maximum stop grace that a task may set',
  reservation_after_seconds:
    'How long the head of a queue waits before it reserves the GPUs with its smallest shortfall',
  queue_aging_seconds:
    'Waiting time after which a pending task rises by one priority class, repeatedly; null: never',
  placement_strategy:
    'best_fit packs tasks, spread distributes them evenly, fifo serves the queue in strict order',
  max_tasks_per_gpu: 'Maximum number of tasks on one GPU, resident or not',
  max_requeues:
    'Maximum number of requeues of a task after attempts that ended within 10 minutes, ' +
    'unless the task has its own limit; null: no limit',
  heartbeat_seconds: 'Interval at which a GPU server reports',
  run_lease_seconds: 'How long tasks keep running when their GPU server has no contact with the controller',
}
