/**
 * The API description is true: its examples are sent to a controller with its fleet, and answered as
 * documented.
 */
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder, write } from '../support/headroom-command.ts'
import { serve } from '../support/served.ts'

interface Media {
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>
}

interface Operation {
  readonly operationId: string
  readonly 'x-role'?: string
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<Record<string, object>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

const STARTED_WITHIN_MS = 60_000
/**
 * Every request carries it: without any token the API would be open, and the example that creates a token
 * would close it.
 */
const SECRET = 'an-admin-secret-of-more-than-32-characters'
/** Endpoints that stream without end, and output, which a simulated fleet does not have. */
const NOT_ASKED = ['streamEvents', 'getTaskLogs', 'streamSimulation']

let url = ''
let operations: readonly { readonly method: string; readonly path: string; readonly operation: Operation }[] =
  []

beforeAll(async () => {
  const folder = temporaryFolder()
  const env = { CONTROLLER_ADMIN_TOKEN_FILE: write(folder, 'admin-token', SECRET) }
  url = (await serve(join(folder, 'data'), env)).url
  const document = (await (await ask('/api/v1/openapi.json')).json()) as Document
  operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}, STARTED_WITHIN_MS)

describe('the OpenAPI document', () => {
  it('has an example of every body but files, and each is answered with a documented success', async () => {
    const withBodies = operations.filter(({ operation }) => operation.requestBody !== undefined)
    expect(withBodies.length).toBeGreaterThan(7)
    for (const each of withBodies)
      if (!NOT_SENT.includes(each.operation.operationId)) await sendExamples(each)
  })

  it('lists the responses of every GET for existing objects', async () => {
    for (const { method, path, operation } of operations) {
      if (method !== 'GET' || NOT_ASKED.includes(operation.operationId)) continue
      const answer = await ask(await filled(path, operation))
      const text = await answer.text()
      expect(
        Object.keys(operation.responses),
        `${operation.operationId}: ${answer.status} ${text.slice(0, 200)}`,
      ).toContain(String(answer.status))
      expect(answer.status, `${operation.operationId}: ${text.slice(0, 200)}`).toBeLessThan(500)
    }
  })

  it('is available as a page without scripts', async () => {
    const answer = await ask('/api/v1/docs')
    const page = await answer.text()
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(page).not.toMatch(/<script|style=|onclick=/)
    expect(answer.headers.get('content-security-policy')).toContain("style-src 'self'")
    for (const { path, operation } of operations) {
      if (path.startsWith('/api/'))
        expect(page, operation.operationId).toContain(`<details id="${operation.operationId}">`)
    }
    expect((await ask('/api/v1/docs/style.css')).headers.get('content-type')).toBe('text/css; charset=utf-8')
  })
})

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(url + path, { ...init, headers: { ...init.headers, Authorization: `Bearer ${SECRET}` } })
}

/**
 * Only a restored store has quarantined attempts, only a GPU server opens channels (cli-channels.test.ts),
 * and only a leader with a standby can resign (test/ha). The bodies of a trace and of a chunk are files:
 * uploads.test.ts and blob-store.test.ts store some.
 */
const NOT_SENT = ['adoptAttempt', 'openChannel', 'resignLeader', 'stopAttempt', 'storeTrace', 'putBlob']

/**
 * The document contains no patterns: a validator that compiles patterns without the u flag rejects every
 * group name.
 */
const UNSTATED_EXAMPLES: Readonly<Record<string, unknown>> = { createGroup: { id: 'vision', node_ids: [] } }

async function sendExamples({ method, path, operation }: (typeof operations)[number]): Promise<void> {
  for (const [type, { example, examples }] of Object.entries(operation.requestBody?.content ?? {})) {
    const stated = example ?? UNSTATED_EXAMPLES[operation.operationId]
    const shown = examples === undefined ? [stated] : Object.values(examples).map(({ value }) => value)
    for (const body of shown) {
      expect(body, `${operation.operationId} has no example of its body`).toBeDefined()
      const answer = await ask(await filled(path, operation), {
        method,
        headers: { 'Content-Type': type },
        body: JSON.stringify(body),
      })
      expect(listedSuccess(operation), `${operation.operationId}: ${await answer.text()}`).toContain(
        String(answer.status),
      )
    }
  }
}

function listedSuccess(operation: Operation): readonly string[] {
  return Object.keys(operation.responses).filter((status) => status.startsWith('2'))
}

/** The path with existing objects that allow the request. */
async function filled(path: string, { operationId }: Operation): Promise<string> {
  const first = async (list: string): Promise<string> => {
    const { items } = (await (await ask(`/api/v1${list}`)).json()) as {
      readonly items: readonly { readonly id?: string; readonly node_id?: string }[]
    }
    return items[0]?.id ?? items[0]?.node_id ?? `nothing in ${list}`
  }
  const ids: Readonly<Record<string, () => Promise<string> | string>> = {
    node_id: () => first('/nodes'),
    task_id: () => (operationId === 'requeueTask' ? first('/tasks?state=running') : newTask()),
    group_id: () => 'training',
    simulation_id: () => (session ??= newSession()),
    scenario: () => 'thrash-guard',
    exercise: () => 'read-the-dashboard',
  }
  let filledPath = path
  for (const [, name = ''] of path.matchAll(/\{(\w+)\}/g)) {
    const known = ids[name]
    filledPath = filledPath.replace(
      `{${name}}`,
      encodeURIComponent(known === undefined ? '1' : await known()),
    )
  }
  return filledPath
}

/** Every example of a session is sent to this session. */
let session: Promise<string> | null = null

async function newSession(): Promise<string> {
  const answer = await ask('/api/v1/exercises/read-the-dashboard/start', { method: 'POST' })
  return ((await answer.json()) as { readonly id: string }).id
}

/** A lease too large for any GPU: it stays pending, and can be kept alive, changed, put on hold and so on. */
async function newTask(): Promise<string> {
  const answer = await ask('/api/v1/tasks', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"vram_mib":16000000}',
  })
  return ((await answer.json()) as { readonly id: string }).id
}
