import type { ApiApp, ApiContext } from '../context.ts'
import { operation } from '../http/operation.ts'
import { PAGE_HEADERS } from '../http/security-headers.ts'
import {
  DocsPageSchema,
  DocsStyleSchema,
  LivezSchema,
  OpenApiSchema,
  ReadyzQuerySchema,
  ReadyzSchema,
  VersionSchema,
} from '../http/service-schema.ts'
import { apiPage, type OpenApiDocument } from './api-page.ts'

/** Retry-After while not ready. */
const READY_AGAIN_SECONDS = '5'

/**
 * /livez, /readyz and /version, at the root and under /api/v1; `suffix` distinguishes their operation ids.
 */
export function healthRoutes(
  app: ApiApp,
  { version, build, fleet, readiness }: ApiContext,
  suffix: string,
): void {
  const livez = operation({
    operationId: `livez${suffix}`,
    role: 'public',
    summary: 'Liveness of the process',
    description: 'Returns 200 while the process responds. Does not check the store or the broker.',
    tags: ['service'],
    response: { 200: LivezSchema },
  })
  const readyz = operation({
    operationId: `readyz${suffix}`,
    role: 'public',
    summary: 'Readiness of the controller',
    description:
      'Returns 200 if every check passes, 503 otherwise; the response lists the checks. A standby is ' +
      'ready while there is a leader.',
    tags: ['service'],
    querystring: ReadyzQuerySchema,
    response: { 200: ReadyzSchema, 503: ReadyzSchema },
  })
  const getVersion = operation({
    operationId: `version${suffix}`,
    role: 'public',
    summary: 'Version of the controller',
    description:
      'Version and commit of the controller, version of this interface, and whether its fleet is simulated.',
    tags: ['service'],
    response: { 200: VersionSchema },
  })

  app.get('/livez', { schema: livez }, () => ({ status: 'alive' as const }))
  app.get('/readyz', { schema: readyz }, (_request, reply) => {
    const checks = readiness()
    const isReady = checks.every((check) => check.ok)
    if (!isReady) reply.header('retry-after', READY_AGAIN_SECONDS)
    reply.code(isReady ? 200 : 503)
    return { status: isReady ? ('ready' as const) : ('not_ready' as const), checks }
  })
  app.get('/version', { schema: getVersion }, () => ({
    name: 'headroom' as const,
    version,
    api: 'v1' as const,
    fleet,
    node: process.version,
    commit: build.commit,
    schema: build.schema,
    store_kind: build.storeKind,
  }))
}

const openApi = operation({
  operationId: 'openApi',
  role: 'public',
  summary: 'This document',
  description: 'The OpenAPI 3.1 description of this interface.',
  tags: ['service'],
  response: { 200: OpenApiSchema },
})

const docsPage = operation({
  operationId: 'docsPage',
  role: 'public',
  summary: 'API reference as an HTML page',
  description:
    'Generated from the OpenAPI description. The page contains no scripts and loads nothing from other ' +
    'servers.',
  tags: ['service'],
  response: { 200: DocsPageSchema },
})

const docsStyle = operation({
  operationId: 'docsStyle',
  role: 'public',
  summary: 'Style sheet of the documentation page',
  description: 'CSS of /docs.',
  tags: ['service'],
  response: { 200: DocsStyleSchema },
})

/** /openapi.json, generated from the schemas of all routes, and /docs, the same as a page. */
export function openApiRoutes(app: ApiApp): void {
  app.get('/openapi.json', { schema: openApi }, () => app.swagger())
  let page: string | null = null
  app.get('/docs', { schema: docsPage }, (_request, reply) => {
    page ??= apiPage(
      app.swagger() as unknown as OpenApiDocument,
      '/api/v1/docs/style.css',
      '/api/v1/openapi.json',
    )
    reply.headers(PAGE_HEADERS).type('text/html; charset=utf-8')
    return page
  })
  app.get('/docs/style.css', { schema: docsStyle }, (_request, reply) => {
    reply.type('text/css; charset=utf-8')
    return PAGE_STYLE
  })
}

/** The style sheet of the page at /api/v1/docs. Light and dark, narrow and wide. */
const PAGE_STYLE = `:root { color-scheme: light dark; --ink: #1b1f24; --dim: #5a6572; --line: #d6dce3;
  --ground: #fff; --soft: #f4f6f8; --link: #0b5cad }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #a3adb8; --line: #39424d;
  --ground: #14181d; --soft: #1c2229; --link: #7db8f5 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif;
  color: var(--ink); background: var(--ground) }
a { color: var(--link) }
h1 { font-size: 1.5rem } h2 { margin-top: 2rem; text-transform: capitalize }
h3 { font-size: 1rem; margin: 1rem 0 .25rem }
p { color: var(--dim) }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: 0; list-style: none }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .4rem .7rem }
details details { background: var(--soft) }
summary { cursor: pointer; overflow-wrap: anywhere }
summary i { font-style: normal; font-size: .8rem; border: 1px solid var(--line); border-radius: 1rem;
  padding: 0 .5rem; color: var(--dim) }
summary b { display: inline-block; min-width: 4.2rem }
code { font: .9em ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--soft); padding: .6rem; white-space: pre-wrap }
.table { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-size: .9rem }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line) }
`
