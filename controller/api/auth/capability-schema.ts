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
        forecasts: Type.Boolean({ description: 'Snapshots, and forecasts of changes and task starts' }),
        task_output: Type.Boolean({ description: 'Task output can be read' }),
        secrets: Type.Boolean({ description: 'Secrets and environment variables for tasks can be stored' }),
        tokens: Type.Boolean({ description: 'Tokens and the audit log' }),
        waiting: Type.Boolean({ description: 'Requests can block until a task starts or finishes (`wait`)' }),
      },
      { description: 'Features of this controller, the same for every caller' },
    ),
    caller: Type.Object({
      name: textOrNull('null: no authentication required'),
      role: oneOf(roleNames),
    }),
    operations: list(Type.String(), {
      description: 'Operations that the role of the caller permits: operationId values of /openapi.json',
    }),
    own_tasks_only: list(Type.String(), {
      description: 'Permitted operations that the caller can use only on its own tasks',
    }),
  },
  { $id: 'Capabilities', description: 'Features of this controller and permissions of the caller.' },
)
export type CapabilitiesBody = Static<typeof CapabilitiesSchema>
