import { Type, type Static } from 'typebox'
import { ROLES, type Role } from '../../model/role.ts'
import { list, oneOf, textOrNull } from '../http/fields-schema.ts'

const roleNames: readonly Role[] = ROLES

export const CapabilitiesSchema = Type.Object(
  {
    fleet: oneOf(['simulated', 'live'], { description: 'Whether the GPU servers are simulated' }),
    features: Type.Object(
      {
        simulations: Type.Boolean({ description: 'Simulations, sweeps, sessions, exercises and traces' }),
        forecasts: Type.Boolean({ description: 'Forecasts of changes and of starts, and snapshots' }),
        task_output: Type.Boolean({ description: 'The output of tasks can be read' }),
        secrets: Type.Boolean({ description: 'Secrets and environment variables of tasks can be stored' }),
        tokens: Type.Boolean({ description: 'Tokens and the audit log' }),
        waiting: Type.Boolean({ description: 'Requests may wait for a task' }),
      },
      { description: 'What this controller can do, for every caller' },
    ),
    caller: Type.Object({
      name: textOrNull('null: no authentication required'),
      role: oneOf(roleNames),
    }),
    operations: list(Type.String(), {
      description: 'Operations (operationId of /openapi.json) that the role of the caller permits',
    }),
    own_tasks_only: list(Type.String(), {
      description: 'Permitted operations that apply only to tasks of the caller',
    }),
  },
  { $id: 'Capabilities', description: 'What this controller and the caller can do.' },
)
export type CapabilitiesBody = Static<typeof CapabilitiesSchema>
