import { Type, type Static } from 'typebox'
import { closed, instant, instantOrNull, oneOf } from '../http/fields-schema.ts'
import { TaskSchema } from './schema.ts'
import { TASK_STATES } from '../../../protocol/units.ts'

/** POST /tasks/{task_id}/keepalive. */
export const KeepaliveSchema = closed(
  {
    busy: Type.Optional(
      Type.Boolean({
        description:
          'true: the task wants the GPU; false: it may be swapped out after the idle period; absent: the ' +
          'GPU server measures the GPU use of the process of the lease',
      }),
    ),
  },
  { examples: [{ busy: true }] },
)
export type KeepaliveBody = Static<typeof KeepaliveSchema>

export const KeptLeaseSchema = Type.Object(
  {
    task_id: Type.String(),
    state: oneOf(TASK_STATES),
    residency: TaskSchema.properties.residency,
    at: instant('Time according to the controller clock'),
    expires_at: instantOrNull(
      'End of the lease unless it is renewed; null: leases do not expire (simulated fleets)',
    ),
  },
  { $id: 'KeptLease' },
)
export type KeptLeaseBody = Static<typeof KeptLeaseSchema>

/** POST /tasks/{task_id}/attachment. */
export const AttachmentSchema = Type.Object(
  {
    task_id: Type.String(),
    attempt: Type.Integer({ minimum: 1 }),
    node_id: Type.String(),
    node_name: Type.String(),
    socket: Type.String({ description: 'Unix socket on the node that the process uses to register' }),
    token: Type.String({ description: 'Token for one registration within 60 s' }),
  },
  { $id: 'Attachment' },
)
