/** No route is served that does not say who may call it. */
import type { FastifyInstance, RouteOptions } from 'fastify'
import { accessOf, openToAll } from './operation.ts'

/** A start fails for a route without a role. */
export function requireDeclaredRoles(app: FastifyInstance): void {
  const routes: RouteOptions[] = []
  app.addHook('onRoute', (route) => void routes.push(route))
  app.addHook('onReady', (done) => {
    routes.forEach(accessOf)
    done()
  })
}

/** For a scope whose routes a plugin makes: the files of the page, which hold nothing of the cluster. */
export function declareOpenToAll(scope: FastifyInstance): void {
  scope.addHook('onRoute', (route) => {
    route.schema = openToAll(route.schema)
  })
}
