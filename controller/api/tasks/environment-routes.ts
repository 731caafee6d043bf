import { Type } from 'typebox'
import { openedEnvironment } from '../../model/environment-values.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem, notFound } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { TaskPathSchema } from './schema.ts'

const EnvironmentSchema = Type.Object({
  env: Type.Unsafe<Readonly<Record<string, string>>>({
    type: 'object',
    additionalProperties: { type: 'string' },
    description: 'Values by variable name, excluding secrets',
  }),
})

const readEnvironment = operation(
  {
    operationId: 'readEnvironment',
    role: 'submitter',
    ownersOnly: 'or_admin',
    summary: 'Environment variable values of an open task',
    description:
      'Available only to the owner of the task and admins. The values are removed when the task ends.',
    tags: ['tasks'],
    params: TaskPathSchema,
    response: { 200: EnvironmentSchema },
  },
  ['not_found', 'conflict'],
)

/** GET /tasks/{task_id}/env. */
export function environmentRoutes(app: ApiApp, { access, views }: ApiContext): void {
  app.get('/tasks/:task_id/env', { schema: readEnvironment }, (request) => {
    const task = views.openTask(request.params.task_id)
    if (task === undefined) throw notFound('task', request.params.task_id)
    const { environment = null, owner } = task.spec
    if (environment === null) return { env: {} }
    const values = openedEnvironment(access.sealer, environment, owner)
    if (values === null)
      throw new ApiProblem(
        'conflict',
        'The values cannot be decrypted: they were encrypted with a different key.',
      )
    return { env: values.env }
  })
}
