/** Fields of a task in seconds: their options of the command line, their names, and what null means. */
export const TASK_TIMES = [
  { field: 'max_runtime_seconds', option: 'max-runtime', name: 'Runtime limit', unset: 'none' },
  { field: 'stop_grace_seconds', option: 'stop-grace', name: 'Stop grace', unset: 'cluster default' },
] as const
