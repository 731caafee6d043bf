import { Type } from 'typebox'
import { MAY_BE_LEFT_OUT } from '../optional-body.ts'
import { closed, count, instantOrNull } from './fields.ts'

export const RequeueFreezeSchema = Type.Object({
  is_frozen: Type.Boolean({
    description: 'Many nodes fell silent together: nothing is requeued or given up',
  }),
  since: instantOrNull('Since when it is, or is not; null: it never was'),
  silent_nodes: count('Nodes that fell silent together'),
})

export const RequeueBodySchema = closed(
  {
    confirm_fenced: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'You have seen to it that nothing of it runs any more on its unreachable node',
      }),
    ),
  },
  { ...MAY_BE_LEFT_OUT, examples: [{ confirm_fenced: false }] },
)
