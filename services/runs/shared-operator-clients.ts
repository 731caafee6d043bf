/**
 * Operator clients for a series of small worlds over the same routes: the routes take longer to build than
 * such a world to run.
 */
import type { FastifyInstance } from 'fastify'
import { createApi, type ApiOptions } from '../../controller/api/server.ts'
import type { OpenOperatorClient } from '../../simulator/run/run.ts'
import { RestOperatorClient, type Routes } from './operator-client.ts'

export interface OperatorClients {
  /** For one world at a time. */
  readonly openOperatorClient: OpenOperatorClient
  close(): Promise<void>
}

export function createOperatorClients(): OperatorClients {
  let app: FastifyInstance | null = null
  let present: Pick<ApiOptions, 'commands' | 'views'> | null = null
  const here = (): Pick<ApiOptions, 'commands' | 'views'> => {
    if (present === null) throw new Error('no operator client is open')
    return present
  }
  const routes: Routes = {
    async appFor(options) {
      present = options
      app ??= createApi({
        ...options,
        commands: forwarded(() => here().commands),
        views: forwarded(() => here().views),
      })
      await app.ready()
      return app
    },
    release: () => Promise.resolve(),
  }
  return {
    openOperatorClient: (world, pump) =>
      Promise.resolve(new RestOperatorClient(world, pump, undefined, routes)),
    close: async () => app?.close(),
  }
}

/** Forwards every access, also to nested objects, to the current value of `target`. */
function forwarded<T extends object>(target: () => T): T {
  const inner = new Map<PropertyKey, object>()
  return new Proxy({} as T, {
    get(_, key) {
      const member: unknown = Reflect.get(target(), key, target())
      if (typeof member === 'object' && member !== null) {
        const known = inner.get(key) ?? forwarded(() => Reflect.get(target(), key, target()) as object)
        inner.set(key, known)
        return known
      }
      if (typeof member !== 'function') return member
      return (...args: readonly unknown[]): unknown =>
        Reflect.apply(
          Reflect.get(target(), key, target()) as (...all: readonly unknown[]) => unknown,
          target(),
          args,
        )
    },
  })
}
