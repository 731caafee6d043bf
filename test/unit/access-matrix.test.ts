/**
 * Routes × roles × ownership. The table is built from the routes themselves, so it covers every new route.
 */
import type { RouteOptions } from 'fastify'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accessOf } from '../../controller/api/http/operation.ts'
import { RANKED_ROLES, ROLES, type LeastRole, type Role } from '../../controller/model/role.ts'
import type { Task } from '../../controller/model/placement.ts'
import { TASK_DEFAULTS } from '../../protocol/limits.ts'
import { accessWorld, type AccessWorld } from '../support/access-world.ts'

/** null: without a token. */
type Who = Role | null
const EVERYBODY: readonly Who[] = [null, ...ROLES]

let world: AccessWorld
const tokens = new Map<Who, string>()

beforeAll(async () => {
  world = await accessWorld()
  for (const role of ROLES) tokens.set(role, await world.token(role))
})
afterAll(() => world.app.close())

function submit(owner: string): Promise<string> {
  const request = {
    ...TASK_DEFAULTS,
    id: null,
    name: null,
    vramMib: 1,
    groups: [],
    labels: {},
    owner,
    command: null,
    maxRuntimeSeconds: null,
  }
  return new Promise((resolve) =>
    world.engine.commands.submitTask(request, (answer) =>
      resolve((answer as { readonly value: Task }).value.spec.id),
    ),
  )
}

/** A refused request must not change anything. */
function state(): string {
  const { views, engine } = world
  const open = [...views.openTasks()].map(({ spec, state }) => [spec, state])
  return JSON.stringify([
    views.config(),
    [...views.groups()],
    open,
    [...engine.access.tokens()].map(({ id }) => id),
    views.counts(),
  ])
}

/** The rule, stated independently of the code. */
function isLetIn(
  who: Who,
  least: LeastRole,
  ownersOnly: boolean | 'or_admin' | 'always',
  isOwn: boolean,
): boolean {
  if (least === 'public') return true
  if (who === null) return false
  if (who === 'endpoint') return false
  if (who === 'metrics' || who === 'gateway') return who === least
  if (least === 'gateway') return who === 'admin'
  if (least === 'metrics') return true
  const rank = (role: string) => (RANKED_ROLES as readonly string[]).indexOf(role)
  if (ownersOnly === true && who === 'submitter' && !isOwn) return false
  if (ownersOnly === 'always' && !(isOwn && who === 'submitter')) return false
  if (ownersOnly === 'or_admin' && who !== 'admin' && !(isOwn && who === 'submitter')) return false
  return rank(who) >= rank(least)
}

async function ask({ method, url }: RouteOptions, who: Who, taskId: string) {
  const path = url.replace(':task_id', taskId).replaceAll(/:[a-z_]+/g, 'nothing-of-that-name')
  const token = tokens.get(who)
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
  // Some responses are streams that do not end.
  const answer = await world.app.inject({
    method: method as 'GET',
    url: path,
    headers,
    payloadAsStream: true,
  })
  answer
    .stream()
    .on('error', () => {})
    .destroy()
  return answer
}

describe('Every route admits exactly the roles that it declares', () => {
  test('There is at least one route for each role', () => {
    const least = new Set(world.routes.map((route) => accessOf(route).role))
    expect([...least].sort((a, b) => (a < b ? -1 : 1))).toEqual([
      'admin',
      'gateway',
      'metrics',
      'operator',
      'public',
      'submitter',
      'viewer',
    ])
    expect(world.routes.length).toBeGreaterThan(35)
  })

  test.each(EVERYBODY)('The route %s admits exactly the roles that it declares', async (who) => {
    // No token gets revoked: except for the task id, the ids in paths do not exist, and there is no body.
    for (const route of world.routes) {
      const { role, ownersOnly } = accessOf(route)
      const name = `${String(route.method)} ${route.url} as ${who ?? 'anonymous'}`
      for (const isOwn of ownersOnly ? [true, false] : [false]) {
        const taskId = await submit(isOwn ? 'submitter' : 'another user')
        const before = state()
        const { statusCode } = await ask(route, who, taskId)
        if (isLetIn(who, role, ownersOnly, isOwn)) expect([401, 403], name).not.toContain(statusCode)
        else {
          expect(statusCode, name).toBe(who === null ? 401 : 403)
          expect(state(), name).toBe(before)
        }
      }
    }
  })

  test('Only admins change tokens and read the audit; only operators change the cluster', () => {
    for (const route of world.routes) {
      const { role, ownersOnly } = accessOf(route)
      const name = `${String(route.method)} ${route.url}`
      if (/\/(tokens|audit)/.test(route.url)) expect(role, name).toBe('admin')
      else if (route.method !== 'GET' && /\/(config|nodes|groups|cluster)/.test(route.url))
        expect(role, name).toBe('operator')
      else if (route.method !== 'GET' && ownersOnly)
        expect([role, route.url.includes('/tasks/:task_id')], name).toEqual(['submitter', true])
    }
  })

  test('A task that has ended still belongs to its owner', async () => {
    const [own, other] = [await submit('submitter'), await submit('another user')]
    const cancelled = [own, other].map(
      (id) => new Promise((resolve) => world.engine.commands.cancelTask(id, 'test', resolve)),
    )
    await Promise.all(cancelled)
    const token = tokens.get('submitter') ?? ''
    const statuses = []
    for (const id of [own, other, 'unknown'])
      statuses.push((await world.ask('DELETE', `/api/v1/tasks/${id}`, { token })).statusCode)
    expect(statuses).toEqual([409, 403, 404])
  })

  test('A submission belongs to its sender', async () => {
    const token = tokens.get('submitter') ?? ''
    const body = { vram_mib: 1, command: ['true'] }
    const made = await world.ask('POST', '/api/v1/tasks', { token, body })
    expect(made.json()).toMatchObject({ owner: 'submitter' })
    const forged = await world.ask('POST', '/api/v1/tasks', { token, body: { ...body, owner: 'admin' } })
    expect(forged.statusCode).toBe(400)
  })
})
