import type { KeptLease } from '../../model/command.ts'
import { ask } from '../http/ask.ts'
import type { ApiApp, ApiContext } from '../context.ts'
import { openTask } from './open-task.ts'
import { operation } from '../http/operation.ts'
import { presentInstant, presentInstantOrNull } from '../http/instant.ts'
import { KeepaliveSchema, KeptLeaseSchema } from './lease-schema.ts'
import { TaskPathSchema } from './schema.ts'

const keepalive = operation(
  {
    operationId: 'keepTaskAlive',
    role: 'submitter',
    ownersOnly: true,
    routine: true,
    summary: 'Renew a lease, and report whether it wants the GPU',
    description: 'A lease is a task without a command. It ends after 60 s without a renewal.',
    tags: ['tasks'],
    params: TaskPathSchema,
    body: KeepaliveSchema,
    response: { 200: KeptLeaseSchema },
  },
  ['not_found', 'conflict', 'store_failed'],
)

/** POST /tasks/{task_id}/keepalive. */
export function leaseRoutes(app: ApiApp, { commands, views }: ApiContext): void {
  app.post('/tasks/:task_id/keepalive', { schema: keepalive }, async ({ params, body }) => {
    const { spec } = await openTask(views, params.task_id)
    const { task, expiresAt } = await ask<KeptLease>((answer) =>
      commands.keepalive(spec.id, body.busy, answer),
    )
    return {
      task_id: spec.id,
      state: task.state,
      residency: task.placement?.residency ?? ('none' as const),
      at: presentInstant(views.now()),
      expires_at: presentInstantOrNull(expiresAt),
    }
  })
}
