import { Type, type Static } from 'typebox'
import { count, instant, instantOrNull, list, oneOf, textOrNull } from '../http/fields-schema.ts'
import { ON_NODE_LOSS, PORT_PROTOCOLS } from '../../../protocol/units.ts'

export const AssignmentSchema = Type.Object({
  task_id: Type.String(),
  state: oneOf(['assigned', 'running', 'unreachable']),
  node_id: Type.String(),
  node_name: Type.String(),
  node_status: oneOf(['up', 'suspect', 'unreachable'], {
    description: 'suspect: the node is silent and receives no new tasks; unreachable: its lease has expired',
  }),
  gpus: list(count(), { description: 'Indexes of the GPUs on the node' }),
  attempt: count('Number of assignments so far; reports of earlier attempts are ignored'),
  generation: count(
    'Number of residency changes within the attempt; swap commands of earlier ' + 'generations are ignored',
  ),
  residency: oneOf(['none', 'resident', 'swapping_out', 'swapped_out', 'swapping_in']),
  demand_mib: count('Demand on each GPU, MiB: as declared, or increased by a later growth'),
  noswap: oneOf([0, 1], { description: 'Value that is used for accounting' }),
  wants_gpu: Type.Boolean(),
  idle_since: instant('Time of the last GPU use, or of the last start or swap-in, whichever is later'),
  on_node_loss: oneOf(ON_NODE_LOSS, {
    description: 'What happens to the task when its node is lost',
  }),
  assigned_at: instant('Time of placement'),
  started_at: instantOrNull('Time at which the GPU server started the task in this attempt'),
  ports: list(
    Type.Object({
      name: Type.String(),
      target: count('TCP port on which the task listens'),
      protocol: oneOf(PORT_PROTOCOLS),
      address: textOrNull(
        'ADDRESS:PORT from which the GPU server forwards connections to the port; null: no such address',
      ),
      detail: textOrNull('Why there is no such address; null if there is one'),
    }),
    { description: 'Ports that the task declares' },
  ),
})
export type AssignmentBody = Static<typeof AssignmentSchema>
