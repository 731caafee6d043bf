import { Type, type Static } from 'typebox'
import { closed, instant, instantOrNull, oneOf } from './fields.ts'
import { TASK_STATES, TaskSchema } from './task.ts'

/** POST /tasks/{task_id}/keepalive. */
export const KeepaliveSchema = closed(
  {
    busy: Type.Boolean({
      description:
        'true: it wants the GPU; false: it may be swapped out once it has been idle for long enough',
    }),
  },
  { examples: [{ busy: true }] },
)
export type KeepaliveBody = Static<typeof KeepaliveSchema>

export const KeptLeaseSchema = Type.Object(
  {
    task_id: Type.String(),
    state: oneOf(TASK_STATES),
    residency: TaskSchema.properties.residency,
    at: instant('The clock of the controller'),
    expires_at: instantOrNull(
      'It ends then unless it is kept alive again; null: leases do not end here (simulated fleets)',
    ),
  },
  { $id: 'KeptLease' },
)
export type KeptLeaseBody = Static<typeof KeptLeaseSchema>
