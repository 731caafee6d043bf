import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createRequestLogger } from '../../controller/api/http/request-logger.ts'

function loggerTo(lines: object[]) {
  let made = 0
  const root = pino(
    { level: 'trace', base: null, timestamp: false },
    { write: (text: string) => void lines.push(JSON.parse(text) as object) },
  )
  const { child } = root
  root.child = function (this: typeof root, ...args: Parameters<typeof child>) {
    made += 1
    return child.apply(this, args)
  } as typeof root.child
  const logger = createRequestLogger.call({} as FastifyInstance, root, { request_id: 'r' }, {}, {} as never)
  return { logger, made: () => made }
}

it('The logger of a request is created with its first line and writes like its parent', () => {
  const lines: object[] = []
  const { logger, made } = loggerTo(lines)
  logger.silent('never')
  expect([made(), lines]).toEqual([0, []])
  for (const level of ['fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const)
    logger[level]({ level_name: level }, 'said %s', level)
  logger.info('a text alone')
  expect(made()).toBe(1)
  expect(lines).toEqual([
    ...Object.entries({ fatal: 60, error: 50, warn: 40, info: 30, debug: 20, trace: 10 }).map(
      ([name, level]) => ({
        ...{ level, request_id: 'r', level_name: name, msg: `said ${name}` },
      }),
    ),
    { level: 30, request_id: 'r', msg: 'a text alone' },
  ])
})

it('The logger of a request accepts another level and has child loggers', () => {
  const lines: object[] = []
  const { logger } = loggerTo(lines)
  logger.child({ part: 'p' }).info('below')
  logger.level = 'error'
  logger.warn('not said')
  expect([logger.level, lines]).toEqual(['error', [{ level: 30, request_id: 'r', part: 'p', msg: 'below' }]])
})
