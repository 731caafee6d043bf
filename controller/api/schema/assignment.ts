import { Type, type Static } from 'typebox'
import { count, instant, instantOrNull, list, oneOf } from './fields.ts'

export const AssignmentSchema = Type.Object({
  task_id: Type.String(),
  state: oneOf(['assigned', 'running', 'unreachable']),
  node_id: Type.String(),
  node_name: Type.String(),
  node_status: oneOf(['up', 'suspect', 'unreachable'], {
    description: 'suspect: silent, takes no new task; unreachable: its lease is over',
  }),
  gpus: list(count(), { description: 'Indexes of its GPUs on that node' }),
  attempt: count('How often the task was assigned; reports of earlier attempts count for nothing'),
  generation: count(
    'Counts changes of residency within the attempt; swap commands of earlier ones count for nothing',
  ),
  residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in']),
  demand_mib: count('On each GPU: declared, or what it grew to'),
  noswap: oneOf([0, 1], { description: 'What it is accounted under' }),
  wants_gpu: Type.Boolean(),
  idle_since: instant('The later of its last GPU use and its last start or swap-in'),
  on_node_loss: oneOf(['wait', 'fail', 'requeue'], {
    description: 'What becomes of it when its node is lost',
  }),
  assigned_at: instant('Placed'),
  started_at: instantOrNull('Started by the GPU server in this attempt'),
})
export type AssignmentBody = Static<typeof AssignmentSchema>
