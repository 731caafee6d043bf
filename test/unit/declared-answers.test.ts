/** The OpenAPI document has what a controller and a standby answer: statuses, problems and header fields. */
import { createServer } from 'node:http'
import { BlockList } from 'node:net'
import { beforeAll, describe, expect, test } from 'vitest'
import { EVENT_SEQ, MIN_EVENT_SEQ } from '../../controller/api/http/event-seq.ts'
import { PROBLEMS } from '../../controller/api/http/errors.ts'
import { NOT_LEADING } from '../../controller/api/http/leader-only.ts'
import { forwardRequest } from '../../services/controller/forward-to-leader.ts'
import { FORWARDED } from '../../services/controller/forwarded-headers.ts'
import { createStandbyState, type StandbyState } from '../../services/controller/standby-state.ts'
import { apiClient } from '../support/api-client.ts'
import { FakeController } from '../support/api-world.ts'
import { askedServer } from '../support/asked.ts'
import { undeclared, type DeclaredAnswers } from '../support/declared-answers.ts'

/** Before a request has reached a route. */
const WITHOUT_A_ROUTE = [
  ...['malformed_json', 'malformed_request', 'route_not_found', 'method_not_allowed'],
  ...['request_timeout', 'uri_too_long', 'cross_site_request'],
]

type Document = DeclaredAnswers & {
  readonly info: { readonly description: string }
  readonly components: { readonly headers: Readonly<Record<string, object>> }
}

let document: Document
beforeAll(async () => {
  const { app, send } = await apiClient(new FakeController())
  document = (await send('GET', '/openapi.json')).body as Document
  await app.close()
})

const operations = () =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods ?? {}).map(([method, operation]) => ({
      ...{ name: `${method.toUpperCase()} ${path}`, isRead: method === 'get' },
      ...{ responses: operation?.responses ?? {}, isOwn: /\/(livez|readyz|metrics)$/.test(path) },
    })),
  )

test('A test that gets an answer with an undeclared status or header field fails', async () => {
  const name = 'GET /api/v1/tasks'
  expect(undeclared(document, name, 200, { 'x-request-id': 'a', 'headroom-event-seq': '1' })).toEqual([])
  expect(undeclared(document, name, 302, {})).toEqual([`${name}: status 302`])
  expect(undeclared(document, name, 200, { 'retry-after': '1' })).toEqual([`${name} 200: header retry-after`])
  const world = new FakeController()
  const { app, send } = await apiClient(world)
  world.nextRefusal = { code: 'conflict', detail: 'The configuration has no conflicts.' }
  await expect(send('PUT', '/config', { max_tasks_per_gpu: 7 })).rejects.toThrow(
    '/openapi.json lacks what was answered: PUT /api/v1/config: status 409',
  )
  await app.close()
})

test('Every problem of the catalogue is in the document, unless it precedes the choice of a route', () => {
  const described = JSON.stringify(document)
  const lacking = Object.keys(PROBLEMS).filter((code) => !described.includes(`(${code})`))
  expect(lacking.filter((code) => !WITHOUT_A_ROUTE.includes(code))).toEqual([])
})

test('Every operation that a standby forwards has what it answers without a leader', () => {
  const all = operations()
  const with503 = (code: string) =>
    all.filter(({ responses }) => responses['503']?.description.includes(`(${code})`) === true)
  const forwarded = all.filter(({ isOwn }) => !isOwn)
  expect(forwarded.length).toBeGreaterThan(50)
  expect(with503('no_leader')).toEqual(forwarded)
  const changes = forwarded.filter(({ isRead }) => !isRead)
  expect(with503('commit_unknown')).toEqual(expect.arrayContaining(changes))
})

test('The header fields between clients and controllers are in the document', () => {
  const names = Object.keys(document.components.headers).map((name) => name.toLowerCase())
  expect(names).toEqual(expect.arrayContaining([EVENT_SEQ, NOT_LEADING, 'retry-after']))
  const told = document.info.description.toLowerCase()
  for (const name of [MIN_EVENT_SEQ, FORWARDED]) expect(told).toContain(`- \`${name}\`:`)
})

describe('the answers of a standby', () => {
  async function standby(sees: (state: StandbyState) => void): Promise<string> {
    const state = createStandbyState({ name: 'b', url: 'http://b' })
    sees(state)
    const options = { standby: state, name: 'b', trustedProxies: new BlockList(), holdMs: 200 }
    return askedServer((request, response) => void forwardRequest(request, response, options))
  }

  async function answer(root: string, method: string, headers: Readonly<Record<string, string>> = {}) {
    const got = await fetch(`${root}/api/v1/tasks`, { method, headers })
    const { code } = (await got.json()) as { readonly code: string }
    const name = `${method} /api/v1/tasks`
    const description = document.paths['/api/v1/tasks']?.[method.toLowerCase()]?.responses[got.status]
    return {
      code,
      isDescribed: description?.description.includes(`(${code})`),
      undeclared: undeclared(document, name, got.status, Object.fromEntries(got.headers)),
      isRefused: got.headers.get(NOT_LEADING) !== null,
    }
  }

  const DECLARED = { isDescribed: true, undeclared: [], isRefused: false }

  test('while no controller leads', async () => {
    const root = await standby((state) => state.sees(null))
    for (const method of ['GET', 'POST'])
      expect(await answer(root, method)).toEqual({ ...DECLARED, code: 'no_leader' })
  })

  test('to another standby, which took it for the leader', async () => {
    const root = await standby((state) => state.sees(null))
    expect(await answer(root, 'GET', { [FORWARDED]: 'c' })).toEqual({
      ...{ ...DECLARED, isRefused: true },
      code: 'no_leader',
    })
  })

  test('when the leader ends before it answers a change', async () => {
    const ends = createServer((request) => void request.socket.destroy())
    await new Promise<void>((resolve) => ends.listen(0, '127.0.0.1', resolve))
    const { port } = ends.address() as { readonly port: number }
    const root = await standby((state) =>
      state.sees({ name: 'a', url: `http://127.0.0.1:${port}`, epoch: 1 }),
    )
    expect(await answer(root, 'POST')).toEqual({ ...DECLARED, code: 'commit_unknown' })
    ends.close()
  })
})
