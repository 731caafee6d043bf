/**
 * How each figure is computed: the texts of the question marks. The formulas are those of docs/glossary.md.
 */
export const HELPS = {
  utilization:
    'Utilization = busy time ÷ time of all GPUs that are up. Busy: at least one kernel ran. Over the ' +
    'last minute.',
  starvation:
    'Starvation = (demand − served) ÷ demand = queue + swap + compute. Demand: GPU time that tasks ' +
    'wanted. Queue: before their start. Swap: after their start, not in VRAM. Compute: in VRAM, ' +
    'sharing the GPU.',
  physical:
    'Physical VRAM: capacity of the GPUs of all registered nodes. Silent nodes count with their last ' +
    'report; the charts omit them.',
  used: 'Used VRAM = resident + foreign: current use by tasks and other processes.',
  allocated: 'Allocated VRAM: VRAM of placed tasks, in VRAM or swapped out.',
  schedulable:
    'Schedulable VRAM = physical × (1 + overcommit percentage ÷ 100), per node: the VRAM that can be ' +
    'allocated.',
  swapped: 'Swapped out: demand of the tasks whose memory is on the host now.',
  failed:
    'Tasks that failed or were lost within the last hour, including before a restart of the ' +
    'controller. Cancelled tasks are not counted.',
  running: 'Placed tasks, including those that are swapped out.',
  queue: 'Submitted tasks that are not placed yet.',
  swaps: 'Completed swap-outs and swap-ins per hour, over the range of the charts.',
  gpus: 'GPUs on nodes that are up, of all known GPUs.',
} as const
