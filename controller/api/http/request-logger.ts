/**
 * The logger of one request, which writes its id into each line. It is made when the first line is: most
 * requests write none.
 */
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
