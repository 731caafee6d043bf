/**
 * Requests derived from the controller's own OpenAPI document to break it, over real sockets, sent to
 * `headroom serve` with its fleet. HOSTILE_REQUESTS and HOSTILE_SEED set their number and seed; with
 * HOSTILE_STALL_MS a longer stall of /livez is also a failure (`make test-hostile`).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { seededStream } from '../../simulator/kernel/seeded-random.ts'
import { temporaryFolder } from '../support/headroom-command.ts'
import { sendHostile } from '../support/hostile-client.ts'
import { type Known, type OpenApiDocument, requestMaker } from '../support/hostile-requests.ts'
import { getJson, serve } from '../support/served.ts'
import { probeStalls } from '../support/stall-probe.ts'

const REQUESTS = Number(process.env['HOSTILE_REQUESTS'] ?? 5_000)
const SEED = process.env['HOSTILE_SEED'] ?? '1'
const STALL_MS = Number(process.env['HOSTILE_STALL_MS'] ?? Infinity)
const TIMEOUT_MS = 60_000 + 10 * REQUESTS

/** An admin token, so that every route is reached; a token created during the test would close them all. */
const TOKEN = 'hostile-requests-carry-this-secret-0123'
const AS_ADMIN = { Authorization: `Bearer ${TOKEN}` }

/** Otherwise one in five would be refused before reaching a route. */
const UNLIMITED = {
  CONTROLLER_HTTP_REQUESTS_PER_SECOND: '0',
  CONTROLLER_HTTP_ANONYMOUS_REQUESTS_PER_SECOND: '0',
}

/** Returned on purpose: a simulated fleet keeps no output of its tasks. */
const isAllowed = (_status: number, code: string): boolean =>
  code === 'logs_unavailable' || code === 'node_unavailable'

it(
  `${REQUESTS} hostile requests (seed ${SEED}) cause no 5xx response, and every error is a problem`,
  async () => {
    const folder = temporaryFolder()
    const admin = join(folder, 'admin.token')
    writeFileSync(admin, TOKEN, { mode: 0o600 })
    const served = await serve(join(folder, 'data'), { ...UNLIMITED, CONTROLLER_ADMIN_TOKEN_FILE: admin })
    const api = `${served.url}/api/v1`
    const document = await getJson<OpenApiDocument>(`${api}/openapi.json`)
    const next = requestMaker(document, await knownThings(api), seededStream(SEED, 'hostile'))
    const probe = probeStalls(served.url)
    const { statuses, faults } = await sendHostile(served.url, TOKEN, REQUESTS, next, isAllowed)
    const { maxMs, p99Ms, count } = await probe.end()
    const listed = [...statuses].sort(([a], [b]) => a - b).map(([status, times]) => `${status}: ${times}`)
    console.log(
      `${REQUESTS} hostile requests, ${listed.join(', ')}; /livez p99 ${p99Ms.toFixed(0)} ms, ` +
        `longest ${maxMs.toFixed(0)} ms of ${count}`,
    )
    expect(faults).toEqual([])
    // The test would prove little if most requests were valid or all failed the first check.
    expect(statuses.get(400) ?? 0).toBeGreaterThan(REQUESTS / 10)
    expect(
      [...statuses].reduce((sum, [status, times]) => (status >= 200 && status < 300 ? sum + times : sum), 0),
    ).toBeGreaterThan(REQUESTS / 50)
    expect(served.process.exitCode).toBeNull()
    expect(await getJson(`${served.url}/readyz`)).toMatchObject({ status: 'ready' })
    expect(maxMs).toBeLessThanOrEqual(STALL_MS)
    served.process.kill('SIGTERM')
    expect(await served.ended).toBe(0)
  },
  TIMEOUT_MS,
)

/** Existing objects, so that requests get past the look-up by id. */
async function knownThings(api: string): Promise<Known> {
  const group = { id: 'hostile', description: '', node_ids: [] }
  await fetch(`${api}/groups`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...AS_ADMIN },
    body: JSON.stringify(group),
  })
  const idsOf = async (path: string, field: string): Promise<string[]> => {
    const answer = await fetch(`${api}${path}`, { headers: AS_ADMIN })
    const { items } = (await answer.json()) as { readonly items: readonly Record<string, string>[] }
    return items.map((item) => item[field] ?? '')
  }
  return {
    task_id: (await idsOf('/tasks?limit=200', 'id')).slice(0, 200),
    node_id: await idsOf('/nodes', 'node_id'),
    group_id: ['hostile', 'other'],
  }
}
