import type { RouteOptions } from 'fastify'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { accessOf } from '../../controller/api/http/operation.ts'
import { createApi } from '../../controller/api/server.ts'
import { mayCall, ROLES, type LeastRole } from '../../controller/model/role.ts'
import { FakeController } from '../support/api-world.ts'

const UI = fileURLToPath(new URL('../../dist/ui', import.meta.url))

function api() {
  const { commands, views } = new FakeController()
  return createApi({ commands, views, version: '0', inVirtualTime: true, uiDir: UI })
}

describe('roles', () => {
  test('include the permissions of the roles below; those of programs have a single purpose', () => {
    const least: readonly LeastRole[] = [
      ...(['public', 'metrics', 'gateway'] as const),
      ...(['viewer', 'submitter', 'operator', 'admin'] as const),
    ]
    const may = ROLES.map((role) => [role, least.filter((wanted) => mayCall(role, wanted)).join(' ')])
    expect(Object.fromEntries(may)).toEqual({
      metrics: 'public metrics',
      viewer: 'public metrics viewer',
      submitter: 'public metrics viewer submitter',
      operator: 'public metrics viewer submitter operator',
      admin: 'public metrics gateway viewer submitter operator admin',
      gateway: 'public gateway',
      endpoint: 'public',
    })
  })
})

describe('a route', () => {
  test('of any kind, including files of the page, declares the role that may call it', async () => {
    const app = api()
    const routes: RouteOptions[] = []
    app.addHook('onRoute', (route) => void routes.push(route))
    await app.ready()
    expect(routes.length).toBeGreaterThan(30)
    for (const route of routes) {
      const { role } = accessOf(route)
      const isRead = [route.method].flat().every((method) => ['GET', 'HEAD'].includes(method))
      // Any user may end their own session, and checking a scenario changes nothing.
      if (['/api/v1/auth/logout', '/api/v1/scenarios/validate'].includes(route.url)) continue
      if (!isRead) expect(['submitter', 'operator', 'admin'], route.url).toContain(role)
    }
    await app.close()
  })

  test('without a role prevents the server from starting', async () => {
    const app = api()
    app.get('/secret', () => 'never')
    await expect(app.ready()).rejects.toThrow('The route GET /secret does not define which role may call it.')
  })

  test('for owners that names no task also prevents the server from starting', async () => {
    const app = api()
    const schema = { 'x-role': 'submitter', 'x-owners-only': true } as object
    app.get('/mine', { schema }, () => 'never')
    await expect(app.ready()).rejects.toThrow('is only for task owners, but its path has no task id')
  })
})
