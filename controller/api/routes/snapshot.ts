import { Readable } from 'node:stream'
import type { ApiApp, ApiContext } from '../context.ts'
import { ApiProblem } from '../errors.ts'
import { operation } from '../operation.ts'
import { SnapshotSchema } from '../schema/snapshot.ts'

const getSnapshot = operation(
  {
    operationId: 'getSnapshot',
    role: 'viewer',
    summary: 'The live state as a scenario file',
    description:
      'JSON that `headroom sim run` takes: the nodes that are up, the configuration, and every open task where it stands, with what is left of its ' +
      'work as estimated from the recent past. Commands and labels are left out.',
    tags: ['summary'],
    response: { 200: SnapshotSchema },
  },
  ['conflict', 'store_failed'],
)

/** Parts of a file that are written before others are heard. */
const PARTS_A_CHUNK = 250

/** GET /snapshot. */
export function snapshotRoutes(app: ApiApp, { twin }: ApiContext): void {
  // Fastify would make the whole of it for HEAD.
  app.get('/snapshot', { schema: getSnapshot, exposeHeadRoute: false }, async (_request, reply) => {
    if (twin === null)
      throw new ApiProblem(
        'conflict',
        'This is a simulated world: what it does is known from its own scenario.',
      )
    const parts = await twin.snapshot()
    reply
      .type('application/json; charset=utf-8')
      .header('content-disposition', 'attachment; filename="snapshot.scenario.json"')
    return reply.send(Readable.from(chunksOf(parts), { objectMode: false })) as never
  })
}

/** Between two chunks others have their turn. */
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
