/**
 * `make test-containers`: the shipped docker-compose.yml, profile gpu, on a real Docker engine, with other
 * images and another device and nothing else changed. A submitter's task looks for keys, tokens, state,
 * sockets, folders and environments of other parties and tasks: it must find none.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parse } from 'yaml'
import { startEngine, whyNoEngine, type Engine } from './engine.ts'
import { makeImages } from './images.ts'

const ROOT = join(import.meta.dirname, '../..')
const URL = 'http://127.0.0.1:30080/api/v1'
const WITHIN_MS = 120_000
const DEVICE = 'gpu-server --device process --inventory /app/inventory.yaml --allow-exec --stop-tasks'
/** Images, and the device of the GPU server: its runtime and the options that name it. */
const OVERRIDE = `services:\n  gpu-server:\n    runtime: runc\n    command: ${DEVICE}\n`
const MAY_DIFFER = ['image', 'build', 'runtime', 'command']

type Service = Readonly<Record<string, unknown>>
interface Task {
  readonly id: string
  readonly state: string
}

const why = whyNoEngine()
if (why !== null) {
  process.stdout.write(`skipped: ${why}\n`)
  process.exit(process.env['CI'] ? 1 : 0)
}
const folder = mkdtempSync(join(tmpdir(), 'headroom-containers-'))
const override = join(folder, 'override.yml')
const SHIPPED = join(ROOT, 'docker-compose.yml')
writeFileSync(override, OVERRIDE)
const engine = await startEngine(folder)
try {
  step('images')
  makeImages(engine, folder, process.argv[2] ?? join(ROOT, 'dist'))
  step('docker-compose up')
  holdAgainstShipped()
  compose(['up', '-d', '--no-build'])
  await probe()
  process.stdout.write('ok: the task read nothing of another party or task\n')
} catch (error) {
  process.stderr.write(`${String(error)}\n${compose(['logs', '--tail=30'])}\n`)
  throw error
} finally {
  compose(['down', '-v', '-t', '5'])
  await engine.stop()
  rmSync(folder, { recursive: true, force: true })
}

function compose(args: readonly string[], files: readonly string[] = [SHIPPED, override]): string {
  const options = files.flatMap((file) => ['-f', file])
  return execFileSync(
    'docker-compose',
    [...options, '--project-directory', ROOT, '--profile', 'gpu', '-p', 'headroom', ...args],
    {
      cwd: ROOT,
      env: engine.env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
}

/** User, volumes, capabilities, namespaces and all else are those of the shipped file. */
function holdAgainstShipped(): void {
  const servicesOf = (files: readonly string[]): Readonly<Record<string, Service>> =>
    (parse(compose(['config'], files)) as { readonly services: Readonly<Record<string, Service>> }).services
  const [shipped, tested] = [servicesOf([SHIPPED]), servicesOf([SHIPPED, override])]
  const without = (service: Service): Service =>
    Object.fromEntries(
      Object.entries(service).flatMap(([key, value]) =>
        MAY_DIFFER.includes(key) ? [] : [[key, ordered(value)]],
      ),
    )
  for (const [name, service] of Object.entries(shipped))
    assert.deepEqual(without(tested[name] ?? {}), without(service), name)
  assert.deepEqual(Object.keys(tested), Object.keys(shipped))
}

/** docker-compose merges lists as sets. */
function ordered(value: unknown): unknown {
  return Array.isArray(value)
    ? value.map((each) => JSON.stringify(each)).toSorted((a, b) => (a < b ? -1 : 1))
    : value
}

async function probe(): Promise<void> {
  step('a submitter and two tasks')
  const admin = compose(['exec', '-T', 'controller', 'cat', '/etc/headroom/admin/admin.token']).trim()
  await until('a GPU server is up', async () => {
    const { items } = await call<{ readonly items: readonly { readonly status: string }[] }>(
      admin,
      'GET',
      '/nodes',
    )
    return items.some(({ status }) => status === 'up')
  })
  const { secret: token } = await call<{ readonly secret: string }>(admin, 'POST', '/tokens', {
    name: 'mallory',
    role: 'submitter',
  })
  const victim = await submit(admin, [
    'sh',
    '-c',
    'export CANARY=CANARY-of-another; echo $CANARY > secret; exec sleep 100000',
  ])
  await until('the other task runs', async () => (await taskOf(admin, victim)).state === 'running')
  const paths = secretPaths(engine)
  assert.ok(
    paths.some((path) => path.endsWith('controller.nk')) && paths.some((path) => path.endsWith('secret')),
    'the secrets are there',
  )
  const attack = await submit(token, [
    'node',
    '--input-type=module',
    '-e',
    ...chunks(readFileSync(join(import.meta.dirname, 'probe.mjs'), 'utf8')),
  ])
  await until(
    'its search is over',
    async () => !['pending', 'assigned', 'running'].includes((await taskOf(token, attack)).state),
  )
  const answer = await fetch(`${URL}/tasks/${attack}/logs`, { headers: { Authorization: `Bearer ${token}` } })
  const { data } = (await answer.json()) as { readonly data: string }
  const output = Buffer.from(data, 'base64').toString()
  process.stdout.write(`${output}\n`)
  const line =
    output.split('\n').find((each) => each.startsWith('{')) ?? assert.fail(`the search said: ${output}`)
  const found = JSON.parse(line) as {
    readonly secrets: unknown
    readonly sockets: unknown
    readonly own: boolean
    readonly uid: number
    readonly status: string
  }
  assert.deepEqual([found.secrets, found.sockets], [[], []])
  // It has really looked: at its own environment, as a user of its own without rights.
  assert.equal(found.own, true)
  assert.ok(found.uid >= 200_000)
  assert.match(found.status, /CapPrm:\s0+;.*CapEff:\s0+;.*NoNewPrivs:\s1/)
  assert.equal((await taskOf(admin, victim)).state, 'running')
}

/** The program of a command is one argument of at most 4,096 characters. */
function chunks(program: string): readonly string[] {
  assert.ok(program.length <= 4_096, `the probe has ${program.length} characters`)
  return [program]
}

/** As root of the host sees them: what there is to be found. */
function secretPaths({ docker }: Engine): readonly string[] {
  const data = docker('info', '--format', '{{.DockerRootDir}}').trim()
  return execFileSync(
    'find',
    [join(data, 'volumes'), '-name', '*.nk', '-o', '-name', 'admin.token', '-o', '-name', 'secret'],
    {
      encoding: 'utf8',
    },
  )
    .trim()
    .split('\n')
}

async function submit(token: string, command: readonly string[]): Promise<string> {
  return (await call<Task>(token, 'POST', '/tasks', { vram_mib: 1_024, command })).id
}

function taskOf(token: string, id: string): Promise<Task> {
  return call<Task>(token, 'GET', `/tasks/${id}`)
}

async function call<T>(token: string, method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${URL}${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as T
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + WITHIN_MS
  while (!(await look().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`not within ${WITHIN_MS / 1000} s: ${what}`)
    await wait(200)
  }
}

function step(what: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`)
}
