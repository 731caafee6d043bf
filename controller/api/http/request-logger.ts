/**
 * The logger of one request, which writes its id into each line. It is created with the first line, because
 * most requests log nothing.
 */
import { randomFillSync } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { FastifyBaseLogger, FastifyServerOptions } from 'fastify'

export const createRequestLogger: NonNullable<FastifyServerOptions['childLoggerFactory']> = (
  logger,
  bindings,
  options,
) => new RequestLogger(() => logger.child(bindings, options))

class RequestLogger implements FastifyBaseLogger {
  readonly #make: () => FastifyBaseLogger
  #made: FastifyBaseLogger | null = null

  constructor(make: () => FastifyBaseLogger) {
    this.#make = make
  }

  get level(): string {
    return this.#logger().level
  }

  set level(level: string) {
    this.#logger().level = level
  }

  child(...args: Parameters<FastifyBaseLogger['child']>): FastifyBaseLogger {
    return this.#logger().child(...args)
  }

  fatal(...line: readonly unknown[]): void {
    write(this.#logger(), 'fatal', line)
  }

  error(...line: readonly unknown[]): void {
    write(this.#logger(), 'error', line)
  }

  warn(...line: readonly unknown[]): void {
    write(this.#logger(), 'warn', line)
  }

  info(...line: readonly unknown[]): void {
    write(this.#logger(), 'info', line)
  }

  debug(...line: readonly unknown[]): void {
    write(this.#logger(), 'debug', line)
  }

  trace(...line: readonly unknown[]): void {
    write(this.#logger(), 'trace', line)
  }

  silent(): void {}

  #logger(): FastifyBaseLogger {
    return (this.#made ??= this.#make())
  }
}

type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'

/** A logger takes a text, or facts and a text, in the same place. */
function write(logger: FastifyBaseLogger, level: Level, line: readonly unknown[]): void {
  const method = logger[level] as (...line: unknown[]) => void
  method.apply(logger, [...line])
}

/**
 * The id under which a request stands in the answer and in the log: its own, when it brought one that can be
 * written anywhere as it is.
 */

const SANE = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/
/** 128 bits, as many as a UUID has; written as 32 digits, which costs a tenth of what randomUUID does. */
const ID_BYTES = 16

const pool = Buffer.alloc(ID_BYTES * 256)
let used = pool.length

export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && SANE.test(given) ? given : newId()
}

function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  return pool.toString('hex', used, (used += ID_BYTES))
}
