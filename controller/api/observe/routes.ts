import { Readable } from 'node:stream'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import { decisionRoutes } from './decision-routes.ts'
import { eventRoutes } from './event-routes.ts'
import { explainRoutes } from './explain-routes.ts'
import { seriesRoutes } from './series-routes.ts'
import { SnapshotSchema } from './snapshot-schema.ts'
import { SummarySchema } from './summary-schema.ts'

const getSummary = operation({
  operationId: 'getSummary',
  role: 'viewer',
  summary: 'Cluster summary: tasks, VRAM, utilization and starvation',
  description:
    'Returns counts and totals for the whole cluster at one instant. A percentage that cannot be ' +
    'measured is null; `utilization_unknown_because` and `starvation_unknown_because` contain the reason.',
  tags: ['summary'],
  response: { 200: SummarySchema },
})

/** GET /summary. */
function summaryRoutes(app: ApiApp, { summary }: ApiContext): void {
  app.get('/summary', { schema: getSummary }, () => summary.asked())
}

/** Events, decisions, explanations, the summary, the series and the snapshot. */
export function observeRoutes(app: ApiApp, api: ApiContext): void {
  eventRoutes(app, api)
  decisionRoutes(app, api)
  explainRoutes(app, api)
  summaryRoutes(app, api)
  snapshotRoutes(app, api)
  seriesRoutes(app, api)
}

const getSnapshot = operation(
  {
    operationId: 'getSnapshot',
    role: 'viewer',
    answerHeaders: ['Content-Disposition'],
    summary: 'The live state as a scenario file',
    description:
      'JSON for `headroom sim run`: the nodes that are up, the configuration, and the state of every ' +
      'open task with its remaining work, estimated from the recent past. Commands and labels are ' +
      'omitted.',
    tags: ['summary'],
    response: { 200: SnapshotSchema },
  },
  ['conflict', 'store_failed'],
)

/** Parts of a file written before yielding to other requests. */
const PARTS_A_CHUNK = 250

/** GET /snapshot. */
function snapshotRoutes(app: ApiApp, { twin }: ApiContext): void {
  // No HEAD route: Fastify would build the whole file for it.
  app.get('/snapshot', { schema: getSnapshot, exposeHeadRoute: false }, async (_request, reply) => {
    if (twin === null)
      throw new ApiProblem('conflict', 'A simulated cluster has no snapshot. Use its scenario.')
    const parts = await twin.snapshot()
    reply
      .type('application/json; charset=utf-8')
      .header('content-disposition', 'attachment; filename="snapshot.scenario.json"')
    return reply.send(Readable.from(chunksOf(parts), { objectMode: false })) as never
  })
}

/** Yields to other requests between chunks. */
async function* chunksOf(parts: Iterable<string>): AsyncGenerator<string> {
  let chunk: string[] = []
  for (const part of parts) {
    if (chunk.push(part) < PARTS_A_CHUNK) continue
    yield chunk.join('')
    chunk = []
    await new Promise((resolve) => setImmediate(resolve))
  }
  yield chunk.join('')
}
