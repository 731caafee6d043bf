import { readFileSync } from 'node:fs'
import ajvCompiler from '@fastify/ajv-compiler'
import serializerCompiler from '@fastify/fast-json-stringify-compiler'
import type { RouteOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createApi } from '../../controller/api/server.ts'
import { FakeController } from '../support/api-world.ts'

interface Operation {
  readonly operationId: string
  readonly summary?: string
  readonly description?: string
  readonly 'x-origin'?: string
  readonly parameters?: readonly { readonly name: string; readonly schema: { readonly pattern?: string } }[]
  readonly responses: Readonly<
    Record<
      string,
      {
        readonly description: string
        readonly content?: Readonly<Record<string, { readonly schema?: object }>>
      }
    >
  >
  readonly requestBody?: {
    readonly required?: boolean
    readonly content: Readonly<Record<string, { readonly schema: object }>>
  }
}
interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, { readonly description?: string }>>
    readonly headers: Readonly<Record<string, { readonly description: string }>>
  }
}

const routes: RouteOptions[] = []
let document: Document
const world = new FakeController()
const OPTIONS = { commands: world.commands, views: world.views, version: '1.2.3', inVirtualTime: true }
const app = createApi(OPTIONS)

beforeAll(async () => {
  app.addHook('onRoute', (route) => void routes.push(route))
  document = (await app.inject('/api/v1/openapi.json')).json()
})
afterAll(() => app.close())

const pathOf = (url: string) => url.replace(/:([a-z_]+)/g, '{$1}').replace(/\*$/, '{*}')
const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
    })),
  )

test('Every schema of every route compiles, although the API compiles it at its first use only', async () => {
  const schemaCompilers = { buildValidator: ajvCompiler(), buildSerializer: serializerCompiler() }
  const atOnce = createApi({ ...OPTIONS, schemaCompilers })
  await expect(atOnce.ready()).resolves.toBeDefined()
  await atOnce.close()
})

describe('the OpenAPI document', () => {
  test('has version 3.1 and names the product', () => {
    expect(document).toMatchObject({ openapi: '3.1.0', info: { title: 'Headroom', version: '1.2.3' } })
  })

  test('contains every route, and each route has a schema for its success', () => {
    expect(routes.length).toBeGreaterThan(25)
    for (const { method, url } of routes) {
      // The interface of a session is described by the OpenAPI document of that interface.
      if (method === 'HEAD' || url.endsWith('/*')) continue
      const operation = document.paths[pathOf(url)]?.[String(method).toLowerCase()]
      expect(operation, `${String(method)} ${url} is missing`).toBeDefined()
      const successes = Object.entries(operation?.responses ?? {}).filter(
        ([status]) => status.startsWith('2') || status === '302',
      )
      expect(successes.length, `${String(method)} ${url} has no success`).toBeGreaterThan(0)
      for (const [status, answer] of successes) {
        // Their bodies are empty.
        if (status === '204' || status === '302') continue
        const [type] = Object.keys(answer.content ?? {})
        expect(
          answer.content?.[type ?? '']?.schema,
          `${String(method)} ${url} ${status} has no schema`,
        ).toBeDefined()
      }
    }
  })

  test('lists the problems of each route', () => {
    for (const { name, operation } of operations()) {
      const problems = Object.entries(operation.responses).filter(
        ([, answer]) => answer.content?.['application/problem+json'] !== undefined,
      )
      expect(
        problems.map(([status]) => status),
        name,
      ).toEqual(expect.arrayContaining(['400', '500']))
    }
  })

  test('marks everything except the three calls of the specification as an addition', () => {
    const unmarked = operations().filter(({ operation }) => operation['x-origin'] !== 'project')
    expect(unmarked.map(({ name }) => name).sort((a, b) => (a < b ? -1 : 1))).toEqual([
      'GET /api/v1/config',
      'PUT /api/v1/config',
      'PUT /api/v1/nodes/{node_id}/config',
    ])
  })

  test('every operation has a unique id and a summary, and no response is called a default', () => {
    const ids = operations().map(({ operation }) => operation.operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { name, operation } of operations()) {
      expect(operation.summary, name).toBeTruthy()
      for (const answer of Object.values(operation.responses))
        expect(answer.description, name).not.toBe('Default Response')
    }
  })

  test('every operation and every shared schema is described', () => {
    expect(
      operations().flatMap(({ name, operation }) =>
        (operation.description ?? '').length > 10 ? [] : [name],
      ),
    ).toEqual([])
    const undescribed = Object.entries(document.components.schemas).flatMap(([name, schema]) =>
      schema.description === undefined ? [name] : [],
    )
    expect(undescribed).toEqual([])
  })

  test('declares header limits (431), event streams as text, and paths without a wildcard', () => {
    for (const { name, operation } of operations())
      expect(Object.keys(operation.responses), name).toContain('431')
    expect(operations().filter(({ path }) => path.includes('*'))).toEqual([])
    const stream =
      document.paths['/api/v1/events/stream']?.['get']?.responses['200']?.content?.['text/event-stream']
        ?.schema
    expect(stream).toEqual({ description: 'Server-sent events' })
  })

  test('declares body rules: exactly one of several fields, a required speed, a file', async () => {
    const bodyOf = (path: string) =>
      Object.values(document.paths[`/api/v1${path}`]?.['post']?.requestBody?.content ?? {})[0]?.schema
    const exactlyOne = (...names: string[]) => ({ oneOf: names.map((name) => ({ required: [name] })) })
    for (const path of ['/simulations', '/simulations/sweep', '/scenarios/validate'])
      expect(bodyOf(path), path).toMatchObject(exactlyOne('scenario', 'scenario_text', 'scenario_inline'))
    expect(bodyOf('/simulations/{simulation_id}/seek')).toMatchObject(
      exactlyOne('virtual_seconds', 'snapshot'),
    )
    expect(bodyOf('/simulations/{simulation_id}/speed')).toMatchObject({ required: ['speed'] })
    expect(bodyOf('/tasks')).toMatchObject({
      anyOf: [{ required: ['vram_mib'] }, { properties: { gpu_mode: { const: 'exclusive' } } }],
      properties: { command: { prefixItems: [{ minLength: 1 }] } },
    })
    expect(JSON.stringify(document)).not.toContain('document-only')
    const file = document.paths['/api/v1/traces']?.['post']?.requestBody
    expect(file).toMatchObject({ required: true, content: { 'application/octet-stream': {} } })
  })

  test.each([
    ['/simulations', {}, 'exactly one of scenario, scenario_text, scenario_inline, got 0'],
    [
      '/simulations/sweep',
      { scenario: 'a', scenario_text: 'b' },
      'exactly one of scenario, scenario_text, scenario_inline, got 2',
    ],
    [
      '/scenarios/validate',
      { scenario: 'a', scenario_inline: {} },
      'exactly one of scenario, scenario_text, scenario_inline, got 2',
    ],
    [
      '/simulations/x/seek',
      { virtual_seconds: 1, snapshot: 's' },
      'exactly one of virtual_seconds, snapshot, got 2',
    ],
    ['/simulations/x/speed', {}, 'speed is required'],
    ['/scenarios/validate', [], 'got an array of length 0'],
    ['/tasks', {}, 'vram_mib is required'],
    ['/tasks', { vram_mib: 1, command: [''] }, 'command.0 must be the program to run'],
  ])('POST %s with %j is refused: %s', async (path, payload, detail) => {
    const answer = await app.inject({ method: 'POST', url: `/api/v1${path}`, payload })
    expect([answer.statusCode, answer.json<{ detail: string }>().detail]).toEqual([
      400,
      expect.stringContaining(detail),
    ])
  })

  test('declares the formats of query parameters: times, durations, lists', () => {
    const patternOf = (path: string, parameter: string) => {
      const found = document.paths[`/api/v1${path}`]?.['get']?.parameters?.find(
        ({ name }) => name === parameter,
      )
      return new RegExp(found?.schema.pattern ?? '^$', 'u')
    }
    const cases: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
      ['/tasks/{task_id}', 'wait', ['0s', '60s', '500ms', '60000ms'], ['00', '61s', '60001ms', '1m']],
      ['/events', 'kind', ['task_placed', 'task_placed,task_held'], ['', 'task', 'task_placed,']],
      ['/series', 'names', ['utilization_percent'], ['', 'x', 'utilization_percent,x']],
      [
        '/audit',
        'since',
        ['2026-01-31T08:00:00Z', '2026-01-31T08:00:00.5Z'],
        ['2026-01-31T24:00:00Z', '2026-01-31T08:00:00'],
      ],
    ]
    for (const [path, parameter, taken, refused] of cases) {
      const pattern = patternOf(path, parameter)
      expect(
        [taken.filter((text) => !pattern.test(text)), refused.filter((text) => pattern.test(text))],
        `${path} ${parameter}`,
      ).toEqual([[], []])
    }
  })

  test('null is not a valid body, even where the body is optional or has alternative fields', async () => {
    for (const path of ['/api/v1/tasks/x/requeue', '/api/v1/simulations/x/snapshot']) {
      const answer = await app.inject({
        method: 'POST',
        url: path,
        headers: { 'content-type': 'application/json' },
        payload: 'null',
      })
      expect([path, answer.statusCode, answer.json<{ code: string }>().code]).toEqual([
        path,
        400,
        'invalid_request',
      ])
    }
  })

  test('a literal path has only its own methods, even where a parameter would match it', async () => {
    for (const path of ['/api/v1/scenarios/validate', '/api/v1/simulations/sweep'])
      expect((await app.inject({ method: 'OPTIONS', url: path })).headers.allow, path).toBe('POST')
  })

  test('every reference resolves', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map(
      ([, reference]) => reference,
    )
    expect(references.length).toBeGreaterThan(20)
    for (const reference of new Set(references)) {
      const [kind = '', name = ''] = (reference ?? '').replace('#/components/', '').split('/')
      expect(document.components).toHaveProperty([kind, name])
    }
  })

  test('a body is optional where all its fields are optional', () => {
    const optional = operations().filter(({ operation }) => operation.requestBody?.required === false)
    expect(optional.map(({ name }) => name.replace('/api/v1', ''))).toEqual([
      'POST /tasks/{task_id}/requeue',
      'POST /attempts/{task_id}/{attempt}/stop',
      'POST /leader/resign',
      'POST /simulations/{simulation_id}/step',
      'POST /simulations/{simulation_id}/snapshot',
      'POST /simulations/{simulation_id}/fork',
    ])
    for (const { name, operation } of operations()) {
      if (operation.requestBody !== undefined)
        expect(operation.requestBody.required, name).toBe(!optional.some((each) => each.name === name))
    }
  })

  test('contains the ranges of the configuration', () => {
    const change = document.paths['/api/v1/config']?.['put']?.requestBody?.content['application/json']?.schema
    expect(change).toMatchObject({
      additionalProperties: false,
      minProperties: 1,
      properties: {
        default_vram_overcommit_percent: { type: 'integer', minimum: 0, maximum: 1000, default: 0 },
        max_residency_seconds: { type: ['integer', 'null'], minimum: 1, maximum: 604_800 },
        placement_strategy: { enum: ['best_fit', 'spread', 'fifo'] },
      },
    })
  })
})

test('docs/rest.md names every route', () => {
  const text = readFileSync(new URL('../../docs/rest.md', import.meta.url), 'utf8')
  for (const { method, url } of routes) {
    if (method === 'HEAD' || !url.startsWith('/api/v1')) continue
    expect(text).toContain(
      `| ${String(method)} | \`${pathOf(url).replace('/api/v1', '').replace('{*}', '*')}\` |`,
    )
  }
})
