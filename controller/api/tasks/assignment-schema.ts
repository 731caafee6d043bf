import { Type, type Static } from 'typebox'
import { count, instant, instantOrNull, list, oneOf, textOrNull } from '../http/fields-schema.ts'
import { ON_NODE_LOSS, PORT_PROTOCOLS } from '../../../protocol/units.ts'

export const AssignmentSchema = Type.Object({
  task_id: Type.String(),
  state: oneOf(['assigned', 'running', 'unreachable']),
  node_id: Type.String(),
  node_name: Type.String(),
  node_status: oneOf(['up', 'suspect', 'unreachable'], {
    description: 'suspect: silent, accepts no new tasks; unreachable: its lease has expired',
  }),
  gpus: list(count(), { description: 'Indexes of its GPUs on that node' }),
  attempt: count('Number of assignments so far; reports of earlier attempts are ignored'),
  generation: count('Residency changes within the attempt; swap commands of earlier generations are ignored'),
  residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in']),
  demand_mib: count('Per GPU: the declared demand, or a later growth'),
  noswap: oneOf([0, 1], { description: 'The value used for accounting' }),
  wants_gpu: Type.Boolean(),
  idle_since: instant('The later of its last GPU use and its last start or swap-in'),
  on_node_loss: oneOf(ON_NODE_LOSS, {
    description: 'What happens to the task when its node is lost',
  }),
  assigned_at: instant('Time of placement'),
  started_at: instantOrNull('Start on the GPU server in this attempt'),
  ports: list(
    Type.Object({
      name: Type.String(),
      target: count('TCP port on which the task listens'),
      protocol: oneOf(PORT_PROTOCOLS),
      address: textOrNull('ADDRESS:PORT at which its GPU server forwards to it; null: it does not'),
      detail: textOrNull('Why there is no such address; null: there is one'),
    }),
    { description: 'The ports that the task declares' },
  ),
})
export type AssignmentBody = Static<typeof AssignmentSchema>
