import { Type, type Static } from 'typebox'
import { MAY_BE_LEFT_OUT } from '../http/optional-body.ts'
import { closed, count, instantOrNull } from '../http/fields-schema.ts'

export const RequeueFreezeSchema = Type.Object({
  is_frozen: Type.Boolean({
    description: 'Many nodes lost contact at the same time; no task is requeued or declared lost',
  }),
  since: instantOrNull('Start of the current state; null: never frozen'),
  silent_nodes: count('Number of nodes that lost contact at the same time'),
})

export const RequeueBodySchema = closed(
  {
    confirm_fenced: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Confirms that no process of the task runs on its unreachable node',
      }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{ confirm_fenced: false }] },
)
export type RequeueBody = Static<typeof RequeueBodySchema>
