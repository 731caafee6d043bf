/** The log of a process: JSON lines on stderr, in which no secret stands. */
import { pino, type DestinationStream, type Logger } from 'pino'
import type { LogLevel } from './environment/env-table.ts'

const HIDDEN = (): string => '…'

/**
 * Nobody writes these on purpose; something that is logged whole could carry them along. By serialisers and
 * not by the redaction of pino, which costs some 20 µs a line, where a line costs 3 (measured).
 */
const SERIALIZERS = {
  req: lineOf,
  request: lineOf,
  err: factsOf,
  ...Object.fromEntries(
    ['headers', 'body', 'query', 'authorization', 'cookie', 'secret', 'token', 'password'].map((name) => [
      name,
      HIDDEN,
    ]),
  ),
}

interface RequestLike {
  readonly method?: string
  readonly url?: string
}

export function createLog(
  level: LogLevel,
  destination: DestinationStream = pino.destination({ fd: 2, sync: true }),
): Logger {
  return pino({ level, serializers: SERIALIZERS }, destination)
}

/** Of a request its method and path: headers and query may hold what is nobody else's business. */
function lineOf({ method, url = '' }: RequestLike): RequestLike {
  return { ...(method === undefined ? {} : { method }), url: url.split('?', 1)[0] ?? '' }
}

/** What an error says, and where; libraries hang requests and options on theirs. */
function factsOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { code } = error as NodeJS.ErrnoException
  const cause = error.cause === undefined ? {} : { cause: factsOf(error.cause) }
  return {
    type: error.name,
    message: error.message,
    ...(code === undefined ? {} : { code }),
    stack: error.stack,
    ...cause,
  }
}
