/**
 * In separate namespaces (main.ts): two controllers on PostgreSQL as in deploy/compose/two-controllers.yml,
 * with a GPU server. Both addresses answer. The leading container is killed: a client with both addresses
 * continues, a task runs, and the container comes back as a standby. Nothing is left after `down --volumes`.
 */
import assert from 'node:assert/strict'
import { createClient, type HeadroomClient } from '../../clients/typescript/client.ts'
import { Compose } from './compose.ts'
import { startEngine, type Engine } from './engine.ts'
import { makeImages } from './images.ts'
import { makePostgresImage } from './postgres-image.ts'
import { until } from './submitter.ts'

const FILE = 'deploy/compose/two-controllers.yml'
const URLS = ['http://127.0.0.1:30080', 'http://127.0.0.1:30180']
/** Services by the name of their controller. */
const SERVICES: Readonly<Record<string, string>> = { 'head-1': 'controller', 'head-2': 'controller-2' }
const FIRST_201_WITHIN_MS = 30_000
const TASK = { vram_mib: 1_024, command: ['sh', '-c', 'exit 0'] }

const [folder = '', dist = ''] = process.argv.slice(2)
const engine = await startEngine(folder)
try {
  step('images')
  makeImages(engine, folder, dist)
  makePostgresImage(engine, folder)
  await prove(engine)
} finally {
  step('the engine stops')
  await engine.stop()
}

async function prove(engine: Engine): Promise<void> {
  const compose = new Compose(engine, folder, [FILE], 'POSTGRES_PASSWORD=a1b2c3\n')
  try {
    step('docker-compose up')
    compose.run('up', '-d', '--no-build')
    const token = await adminToken(compose)
    const client = createClient({ url: URLS.join(), token })
    await until(
      () => 'a standby and a node are there',
      () => isComplete(client),
    )
    step('a task through each address')
    for (const url of URLS) await runs(createClient({ url, token }), client)
    const before = await leaderOf(client)
    step(`the container of ${before} is killed`)
    const from = performance.now()
    killed(engine, compose, SERVICES[before] ?? '')
    const { id } = await client.tasks.submit(TASK, { signal: AbortSignal.timeout(FIRST_201_WITHIN_MS) })
    step(`  first 201 after ${Math.round(performance.now() - from)} ms`)
    assert.notEqual(await leaderOf(client), before)
    await ended(client, id)
    await until(
      () => 'the killed one is a standby',
      () => isComplete(client),
    )
    step('docker-compose down')
    compose.run('down', '--volumes', '-t', '20')
    assert.deepEqual(left(engine), [])
    process.stdout.write('ok: the other controller led, the task ran, and nothing is left\n')
  } catch (error) {
    process.stderr.write(`${compose.run('logs', '--no-color', '--tail=30')}\n`)
    compose.run('kill')
    throw error
  }
}

async function adminToken(compose: Compose): Promise<string> {
  let token = ''
  await until(
    () => 'the first token is there',
    async () => {
      token = compose.run('exec', '-T', 'controller', 'cat', '/etc/headroom/admin/admin.token').trim()
      return Promise.resolve(token !== '')
    },
  )
  return token
}

async function leaderOf(client: HeadroomClient): Promise<string> {
  return (await client.leader.get()).leader?.name ?? ''
}

/** A standby follows the leader, and a node is up. */
async function isComplete(client: HeadroomClient): Promise<boolean> {
  const { standbys } = await client.leader.get()
  const nodes = await client.nodes.list()
  return standbys.some(({ lag_ms: lag }) => lag !== null) && nodes.items.some(({ status }) => status === 'up')
}

async function runs(at: HeadroomClient, client: HeadroomClient): Promise<void> {
  await ended(client, (await at.tasks.submit(TASK)).id)
}

async function ended(client: HeadroomClient, id: string): Promise<void> {
  await until(
    () => `task ${id} is completed`,
    async () => (await client.tasks.get(id)).state === 'completed',
  )
}

/** As by the kernel: the engine starts it again, because no operator has stopped it. */
function killed({ docker }: Engine, compose: Compose, service: string): void {
  const container = compose.run('ps', '--quiet', service).trim()
  process.kill(Number(docker('inspect', '--format', '{{.State.Pid}}', container)), 'SIGKILL')
}

/** Containers, volumes and networks besides those of the engine. */
function left({ docker }: Engine): readonly string[] {
  const own = ['bridge', 'host', 'none']
  const listed = [
    docker('ps', '--all', '--quiet'),
    docker('volume', 'ls', '--quiet'),
    docker('network', 'ls', '--format', '{{.Name}}'),
  ]
  return listed.flatMap((text) => text.split('\n')).filter((name) => name !== '' && !own.includes(name))
}

function step(what: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`)
}
