import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../operation.ts'
import { presentEvent } from '../present/event.ts'
import { EventPageSchema, EventQuerySchema } from '../schema/event.ts'

const listEvents = operation(
  {
    operationId: 'listEvents',
    role: 'viewer',
    summary: 'What happened, oldest first',
    tags: ['events'],
    querystring: EventQuerySchema,
    response: { 200: EventPageSchema },
  },
  ['store_failed'],
)

const DEFAULT_LIMIT = 50

/** GET /events. */
export function eventRoutes(app: ApiApp, { views }: ApiContext): void {
  app.get('/events', { schema: listEvents }, async ({ query: { after = 0, task = null, node = null, limit = DEFAULT_LIMIT } }) => {
    const events = await views.stored.events({ afterSeq: after, taskId: task, nodeId: node, limit })
    return { items: events.map(presentEvent), next_after: events.at(-1)?.seq ?? after, last_seq: views.lastEventSeq() }
  })
}
