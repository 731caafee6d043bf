/** How each figure is computed: what the question marks say. The formulas are those of docs/glossary.md. */
export const HELPS = {
  utilization:
    'Utilization = busy time ÷ time of all GPUs that are up. Busy: at least one kernel ran. About the last minute.',
  starvation:
    'Starvation = (demand − served) ÷ demand = queue + swap + compute. Demand: GPU time that tasks wanted. Queue: they had not started. Swap: they had started and were not in VRAM. Compute: they were in VRAM and shared the GPU.',
  physical:
    'Physical VRAM: what the GPUs of all registered nodes have. Silent nodes count with what they held last; the charts leave them out.',
  used: 'Used VRAM = resident + foreign: what tasks and other processes hold now.',
  allocated: 'Allocated VRAM: what is promised to placed tasks, in VRAM or swapped out.',
  schedulable:
    'Schedulable VRAM = physical × (1 + overcommit percentage ÷ 100), node by node: what may be promised.',
  swapped: 'Swapped out: demand of the tasks whose memory is on the host now.',
  failed:
    'Tasks that ended as failed or lost within the last hour, also before a restart of the controller. Cancelled tasks are not counted.',
  queue: 'Tasks that are submitted and not placed yet.',
  swaps: 'Swap-outs and swap-ins that ended, per hour, over the range of the charts.',
  gpus: 'GPUs on nodes that answer, of all GPUs that are known.',
} as const
