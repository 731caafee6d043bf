/**
 * How each figure is computed: the texts of the question marks. The formulas are those of docs/glossary.md.
 */
export const HELPS = {
  utilization:
    'Utilization = busy time ÷ total time of all GPUs that are up, over the last minute. A GPU is busy ' +
    'while at least one kernel runs.',
  starvation:
    'Starvation = (demand − served) ÷ demand = queue + swap + compute. Demand is the GPU time that tasks ' +
    'wanted. Queue: the task has not started. Swap: the task has started but is not in VRAM. Compute: ' +
    'the task is in VRAM but shares the GPU.',
  physical:
    'Physical VRAM: the capacity of all GPUs on registered nodes. Silent nodes are included with their ' +
    'last reported capacity, but are omitted from the charts.',
  used: 'Used VRAM = resident + foreign: the VRAM that tasks and other processes use now.',
  allocated: 'Allocated VRAM: the VRAM of all placed tasks, whether resident or swapped out.',
  schedulable:
    'Schedulable VRAM = physical × (1 + overcommit percentage ÷ 100), calculated per node: the VRAM that ' +
    'can be allocated.',
  swapped: 'Swapped out: the demand of the tasks whose memory is now on the host.',
  failed:
    'Tasks that failed or were lost within the last hour, including those before a controller ' +
    'restart. Cancelled tasks are not counted.',
  running: 'Placed tasks, including those that are swapped out.',
  queue: 'Submitted tasks that have not been placed yet.',
  swaps: 'Completed swap-outs and swap-ins per hour, over the time range of the charts.',
  gpus: 'GPUs on nodes that are up, out of all known GPUs.',
} as const
