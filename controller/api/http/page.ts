/** The page: its files as they were built, at `/` and at the paths that it reads itself. */
import { join } from 'node:path'
import serveStatic from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { declareOpenToAll } from './declared-roles.ts'

/**
 * How the build names its files: flat, with a hash of what is in them, so that a name never means something
 * else.
 */
const FILE = /^[\w-]+(\.[\w-]+)+$/
const YEAR_MS = 31_536_000_000

/** Files are looked up on request: a page that is rebuilt under a running controller is served at once. */
export function servePage(scope: FastifyInstance, uiDir: string): void {
  declareOpenToAll(scope)
  void scope.register(serveStatic, { root: uiDir, serve: false, preCompressed: true })
  const assets = join(uiDir, 'assets')
  scope.get<{ Params: { readonly file: string } }>(
    '/assets/:file',
    { schema: { hide: true } },
    ({ params }, reply) =>
      FILE.test(params.file)
        ? reply.sendFile(params.file, assets, { maxAge: YEAR_MS, immutable: true })
        : reply.callNotFound(),
  )
  for (const path of ['/', ...PAGE_PATHS])
    scope.get(path, { schema: { hide: true } }, (_request, reply) => reply.sendFile('index.html'))
}

/**
 * Paths below `/` at which the page stands: it reads its address itself (ui/app.tsx). All else that is no
 * file is a problem like any other.
 */
const PAGE_PATHS = [
  '/tasks',
  '/tasks/*',
  '/nodes',
  '/nodes/*',
  '/groups',
  '/groups/*',
  '/owners',
  '/events',
  '/recovery',
  '/search',
  '/settings',
  '/planner',
  '/planner/*',
  '/simulator',
  '/simulator/*',
  '/glossary',
] as const
