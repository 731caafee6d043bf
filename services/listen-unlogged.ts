import type { FastifyInstance, FastifyListenOptions } from 'fastify'

/** Listens without fastify's line about the address, which the line at the start of the process names. */
export async function listenUnlogged(app: FastifyInstance, place: FastifyListenOptions): Promise<void> {
  const { level } = app.log
  app.log.level = 'warn'
  try {
    await app.listen(place)
  } finally {
    app.log.level = level
  }
}
