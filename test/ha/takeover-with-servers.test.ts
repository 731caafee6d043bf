/**
 * Two controllers on PostgreSQL with a broker and a GPU server of real processes: what users have given to
 * one is there under the next one, and a leader that was stopped and continued starts nothing.
 */
import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../clients/typescript/client.ts'
import { viewLeader } from '../../controller/adapters/postgres/leader-commands.ts'
import { figure, newFolder } from '../durability/controller-on.ts'
import { freePort } from '../support/free-port.ts'
import { FROM_SOURCES_ENV } from '../support/headroom-command.ts'
import { headroom, LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { whyNoNatsServer } from '../support/nats-server.ts'
import { OidcProvider } from '../support/oidc-provider.ts'
import { PostgresServer, whyNoPostgres } from '../support/postgres-server.ts'
import { Load, PATIENCE_MS } from './load.ts'
import { fillWith } from './pair.ts'
import { quantile, spread } from './spread.ts'

/** The pending tasks that are there at the start and the load do not fit. */
const INVENTORY = 'gpus:\n  - { vram_mib: 4Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
const STOPS = figure('HA_SERVER_STOPS', 2)
const OPEN_TASKS = figure('HA_OPEN_TASKS', 0)
const FIRST_START_P95_WITHIN_MS = figure('HA_FIRST_START_P95_WITHIN_MS', 60_000)
const TIMEOUT_MS = 300_000 + STOPS * 60_000
/** Tasks that are submitted before the leader is stopped, while it is, and after it continues. */
const TASKS_EACH = 5
const LEASE_MS = 2_000
/** Four clients: about 100 submissions a second. */
const LOAD_PAUSE_MS = 35

interface Running {
  readonly root: string
  readonly member: Member
}

interface Task {
  readonly id: string
  readonly state: string
  readonly attempt: number
}

const why = whyNoPostgres() ?? whyNoNatsServer()
describe.skipIf(why !== null)('two controllers with a GPU server', { timeout: TIMEOUT_MS }, () => {
  let server: PostgresServer
  let provider: OidcProvider
  let cluster: LiveCluster
  let running: readonly Running[]
  beforeAll(async () => {
    server = await PostgresServer.start()
    await fillWith(OPEN_TASKS, server)
    provider = await OidcProvider.start()
    const folder = newFolder()
    const [token, port] = [randomBytes(24).toString('hex'), await freePort()]
    const [tokenFile, secretFile] = [join(folder, 'admin.token'), join(folder, 'client.secret')]
    writeFileSync(tokenFile, token, { mode: 0o600 })
    writeFileSync(secretFile, provider.clientSecret, { mode: 0o600 })
    const env = {
      CONTROLLER_STORE_URL: server.url,
      CONTROLLER_SECRETS_KEY_FILE: join(folder, 'secrets.key'),
      CONTROLLER_LEASE_MS: String(LEASE_MS),
      CONTROLLER_ADMIN_TOKEN_FILE: tokenFile,
      CONTROLLER_OIDC_ISSUER: provider.issuer,
      CONTROLLER_OIDC_CLIENT_ID: provider.clientId,
      CONTROLLER_OIDC_CLIENT_SECRET_FILE: secretFile,
      CONTROLLER_OIDC_PUBLIC_URL: 'http://127.0.0.1:30080',
      CONTROLLER_OIDC_ROLES: 'gpu-operators=operator',
    }
    cluster = await LiveCluster.start({ ...env, CONTROLLER_NAME: 'a' })
    cluster.token = token
    const b = cluster.addMember('controller b', headroom('serve'), {
      ...{ ...FROM_SOURCES_ENV, ...env, CONTROLLER_NAME: 'b', CONTROLLER_NATS_URL: cluster.natsUrl },
      ...{ CONTROLLER_HTTP_PORT: String(port), CONTROLLER_DATA_DIR: cluster.path('controller-b') },
      ...{ CONTROLLER_STORE_KIND: 'trial', LOG_LEVEL: 'warn' },
    })
    running = [
      { root: cluster.url, member: cluster.controller },
      { root: `http://127.0.0.1:${port}`, member: b },
    ]
    await started(running[1] as Running)
  }, TIMEOUT_MS)
  afterAll(async () => {
    await cluster?.end()
    await provider?.close()
    await server?.remove()
  })

  const isReady = (root: string, role = '') =>
    fetch(`${root}/readyz${role}`, { signal: AbortSignal.timeout(1_000) }).then(
      (answer) => answer.ok,
      () => false,
    )
  const started = ({ root, member }: Running) => member.start(() => isReady(root))

  async function leader(): Promise<{ readonly leads: Running; readonly other: Running }> {
    let found: Running | undefined
    await until('a controller leads', async () => {
      const answers = await Promise.all(running.map(({ root }) => isReady(root, '?role=leader')))
      found = running[answers.indexOf(true)]
      return found !== undefined
    })
    const leads = found as Running
    return { leads, other: running.find((each) => each !== leads) as Running }
  }

  interface Sent {
    readonly cookie?: string
    readonly body?: unknown
    readonly headers?: Readonly<Record<string, string>>
    readonly withinMs?: number
  }

  async function send(root: string, method: string, path: string, sent: Sent = {}) {
    const { cookie, body, headers, withinMs = 10_000 } = sent
    const isBytes = body instanceof Uint8Array
    const who =
      cookie === undefined
        ? { authorization: `Bearer ${cluster.token ?? ''}` }
        : { cookie, 'sec-fetch-site': 'same-origin' }
    const type = { 'content-type': isBytes ? 'application/octet-stream' : 'application/json' }
    const answer = await fetch(`${root}/api/v1${path}`, {
      method,
      redirect: 'manual',
      headers: { ...who, ...(body === undefined ? {} : type), ...headers },
      ...(body === undefined ? {} : { body: isBytes ? Buffer.from(body) : JSON.stringify(body) }),
      signal: AbortSignal.timeout(withinMs),
    })
    return { status: answer.status, text: await answer.text(), headers: answer.headers }
  }

  async function signIn(root: string): Promise<string> {
    const cookieOf = (headers: Headers) => (headers.getSetCookie().at(-1) ?? '').split(';', 1)[0] ?? ''
    const begun = await send(root, 'GET', '/auth/login')
    const atProvider = await fetch(begun.headers.get('location') ?? '', { redirect: 'manual' })
    const back = new URL(atProvider.headers.get('location') ?? '')
    const path = `${back.pathname.replace('/api/v1', '')}${back.search}`
    return cookieOf((await send(root, 'GET', path, { cookie: cookieOf(begun.headers) })).headers)
  }

  async function nodesAt(root: string): Promise<readonly string[]> {
    const { items } = JSON.parse((await send(root, 'GET', '/nodes')).text) as {
      readonly items: readonly { readonly status: string }[]
    }
    return items.map(({ status }) => status)
  }

  const taskAt = async (root: string, id: string) =>
    JSON.parse((await send(root, 'GET', `/tasks/${id}`)).text) as Task

  async function given(root: string, name: string, command: string): Promise<string> {
    const { text } = await send(root, 'POST', '/tasks', {
      body: { name, vram_mib: 500, command: ['sh', '-c', command] },
    })
    return (JSON.parse(text) as Task).id
  }

  /** Reads all events of the cluster, from the first on. */
  function watch(url: string) {
    const over = new AbortController()
    const events: { readonly seq: number; readonly kind: string; readonly task_id: string | null }[] = []
    const { follow } = createClient({ url, token: cluster.token }).events
    const reading = (async () => {
      for await (const event of follow({ after: 0, signal: over.signal })) events.push(event)
    })()
    return { events, end: () => (over.abort(), reading) }
  }

  it('start a task with the folder and the secret that the killed leader was given', async () => {
    const { leads, other } = await leader()
    // Through the standby.
    const cookie = await signIn(other.root)
    const as = async (root: string, method: string, path: string, body?: unknown) => {
      const answer = await send(root, method, path, { cookie, body })
      expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
      return answer.text === '' ? null : (JSON.parse(answer.text) as unknown)
    }
    const sha = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')
    const content = Buffer.from('from the folder')
    const file = { path: 'data.txt', kind: 'file', bytes: content.length, executable: false }
    const manifest = Buffer.from(
      JSON.stringify({ version: 1, entries: [{ ...file, chunks: [sha(content)] }] }),
    )
    for (const blob of [content, manifest]) await as(leads.root, 'PUT', `/blobs/${sha(blob)}`, blob)
    await as(leads.root, 'PUT', '/secrets/KEY', { value: 'and the secret' })
    const out = cluster.path('out')
    mkdirSync(out)
    chmodSync(out, 0o777)
    const request = {
      ...{ name: 'given', vram_mib: 500, workdir: sha(manifest), secrets: { KEY: 'KEY' } },
      command: ['sh', '-c', `{ cat data.txt; printf ' %s' "$KEY"; } >${join(out, 'result')}`],
    }
    const { id } = (await as(leads.root, 'POST', '/tasks', request)) as Task
    leads.member.signal('SIGKILL')
    await until('the other one leads', () => isReady(other.root, '?role=leader'))
    expect(await as(other.root, 'GET', '/auth/session')).toMatchObject({
      caller: { name: 'ada@example.org', role: 'operator' },
    })
    expect(await as(other.root, 'POST', '/blobs/missing', { sha256: [sha(content)] })).toEqual({ sha256: [] })
    await started(leads)
    await cluster.startServer('gpu-1', INVENTORY)
    await until('the task has ended', async () => {
      const { state } = (await as(other.root, 'GET', `/tasks/${id}`)) as Task
      return state === 'completed'
    })
    expect(readFileSync(join(out, 'result'), 'utf8')).toBe('from the folder and the secret')
  })

  it('run every task once when the leader is stopped for longer than its lease and continues', async () => {
    const runs = cluster.path('runs')
    mkdirSync(runs)
    chmodSync(runs, 0o777)
    let count = 0
    const submitted: string[] = []
    /** Files of the runs of a task. Each attempt writes as a separate user, so that they cannot share one. */
    const runsOf = (name: string) => readdirSync(runs).filter((file) => file.startsWith(`${name}.`))
    /** At any address, as a client does. */
    async function submit(command: string): Promise<string> {
      const name = `run-${(count += 1)}`
      const run = `mktemp ${join(runs, `${name}.XXXXXX`)}; ${command}`
      const body = { name, vram_mib: 500, command: ['sh', '-c', run] }
      const headers = { 'idempotency-key': name }
      for (let tries = 0; tries < 60; tries++) {
        const { root } = running[tries % 2] as Running
        const sent = { body, headers, withinMs: PATIENCE_MS }
        const answer = await send(root, 'POST', '/tasks', sent).catch(() => null)
        if (answer?.status === 201 || answer?.status === 200) {
          const { id } = JSON.parse(answer.text) as Task
          submitted.push(id)
          return id
        }
      }
      throw new Error(`${name} was not acknowledged`)
    }
    const submitSome = async () => {
      for (let i = 0; i < TASKS_EACH; i++) await submit('true')
    }
    const long = await submit('exec sleep 3600')
    await until('it runs', async () => (await taskAt((await leader()).leads.root, long)).state === 'running')
    const load = new Load(
      running.map(({ root }) => root),
      {
        headers: { authorization: `Bearer ${cluster.token ?? ''}` },
        task: () => ({ vram_mib: 8_000 }),
        pauseMs: LOAD_PAUSE_MS,
      },
    )
    load.begin()
    const firstStartMs: number[] = []
    for (let i = 0; i < STOPS; i++) {
      const { leads, other } = await leader()
      // Commands of the last ones are on their way.
      await submitSome()
      leads.member.signal('SIGSTOP')
      const stoppedAt = Date.now()
      const first = `run-${count + 1}`
      await submit('true')
      await until('the other one leads', () => isReady(other.root, '?role=leader'))
      await submitSome()
      leads.member.signal('SIGCONT')
      await submitSome()
      await until('the one that went on has ended', () => !leads.member.isRunning)
      await started(leads)
      await until('the first task has started', () => runsOf(first).length > 0)
      firstStartMs.push(statSync(join(runs, runsOf(first)[0] ?? '')).mtimeMs - stoppedAt)
    }
    await load.end()
    const expectedOf = (id: string) => (id === long ? 'running' : 'completed')
    await until('all tasks have ended', async () => {
      const { root } = (await leader()).leads
      // One after the other: an address may have 256 connections.
      for (const id of submitted) if ((await taskAt(root, id)).state !== expectedOf(id)) return false
      return true
    })
    const many = submitted.map((_, i) => runsOf(`run-${i + 1}`).length)
    expect(many).toEqual(submitted.map(() => 1))
    const { leads } = await leader()
    expect(await taskAt(leads.root, long)).toMatchObject({ state: 'running', attempt: 1 })
    firstStartMs.sort((a, b) => a - b)
    console.log(
      `the leader was stopped (SIGSTOP) and continued ${STOPS} times with a GPU server: ` +
        `${submitted.length} tasks, each started once; ${OPEN_TASKS} tasks at the start, ` +
        `${load.acknowledged} submitted meanwhile; first start on the server after ${spread(firstStartMs)}`,
    )
    expect(quantile(firstStartMs, 0.95)).toBeLessThanOrEqual(FIRST_START_P95_WITHIN_MS)
  })

  it.each([
    ['leader', 'broker'],
    ['broker', 'leader'],
  ] as const)('reach the next leader when the %s is lost before the %s', async (...order) => {
    const { leads, other } = await leader()
    await until('the node is up', async () => (await nodesAt(leads.root)).includes('up'))
    const { name } = (await viewLeader(server.place)).leader ?? {}
    const watcher = watch(running.map(({ root }) => root).join())
    const long = await given(leads.root, `long-${order[0]}`, 'exec sleep 3600')
    await until('it runs', async () => (await taskAt(leads.root, long)).state === 'running')
    for (const lost of order) await (lost === 'leader' ? leads.member : cluster.broker).end('SIGKILL')
    await until('the other one leads', async () => {
      const now = (await viewLeader(server.place)).leader
      return now !== null && now.name !== name && now.url !== ''
    })
    await cluster.startBroker()
    const short = await given(other.root, `short-${order[0]}`, 'true')
    await until('a new task has ended', async () => (await taskAt(other.root, short)).state === 'completed')
    expect(await taskAt(other.root, long)).toMatchObject({ state: 'running', attempt: 1 })
    await until('the watcher sees its end', () =>
      watcher.events.some((event) => event.kind === 'task_finished' && event.task_id === short),
    )
    await watcher.end()
    const seqs = watcher.events.map(({ seq }) => seq)
    expect(seqs).toEqual(seqs.map((_, at) => at + 1))
    await started(leads)
  })
})
