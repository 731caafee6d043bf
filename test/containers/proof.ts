/**
 * In separate namespaces (main.ts): starts the shipped services, and has a submitter's task search for keys,
 * tokens, state, sockets, folders and environments of other parties and tasks. It must find none. Then the
 * same search with more permissions must find each of them.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { byCodeUnits } from '../../controller/structures/order.ts'
import { Compose } from './compose.ts'
import { startEngine, type Engine } from './engine.ts'
import { makeImages } from './images.ts'
import { CANARY, probeCommand, reportIn, whatThereIs, type Report, type Told } from './search.ts'
import { ApiUser, until } from './submitter.ts'

const FOLLOWS = 'export CANARY; echo $CANARY | tee secret; exec 3<secret; exec sleep 100000'
const ENDED = ['completed', 'failed', 'cancelled']
/**
 * Volumes whose files a task as root can read: those of its server, and through processes of the host the
 * controller's key.
 */
const OF_SHARED_ROOT = ['gpu-server-state', 'key-gpu-server', 'key-controller']

const [folder = '', dist = ''] = process.argv.slice(2)
const engine = await startEngine(folder)
try {
  step('images')
  makeImages(engine, folder, dist)
  await prove(engine)
} finally {
  step('the engine stops')
  await engine.stop()
}

async function prove(engine: Engine): Promise<void> {
  const compose = new Compose(engine, folder)
  step('the override changes the device and nothing else')
  compose.holdAgainstShipped()
  try {
    step('docker-compose up')
    compose.run('up', '-d', '--no-build')
    const { admin, submitter } = await users(compose)
    step('a task searches as shipped')
    await searchAsShipped(engine, compose, admin, submitter)
    step('negative control: the same search with all rights of the host')
    findsAll(engine, compose, whatThereIs(engine, compose.shipped))
    step('negative control: the same task with --task-user root')
    await searchAsRoot(engine, compose, admin, submitter)
    process.stdout.write(
      'ok: a task reads nothing of another party or task; with more rights the same search finds it\n',
    )
  } catch (error) {
    process.stderr.write(`${compose.run('logs', '--no-color', '--tail=30')}\n`)
    throw error
  } finally {
    // The engine would wait for them for the time that the shipped file allows.
    compose.run('kill')
  }
}

async function users(compose: Compose): Promise<{ readonly admin: ApiUser; readonly submitter: ApiUser }> {
  const admin = new ApiUser(
    compose.run('exec', '-T', 'controller', 'cat', '/etc/headroom/admin/admin.token').trim(),
  )
  await until(
    () => 'a GPU server is up',
    async () => {
      const { items } = await admin.call<{ readonly items: readonly { readonly status: string }[] }>(
        'GET',
        '/nodes',
      )
      return items.some(({ status }) => status === 'up')
    },
  )
  const { secret } = await admin.call<{ readonly secret: string }>('POST', '/tokens', {
    name: 'mallory',
    role: 'submitter',
  })
  return { admin, submitter: new ApiUser(secret) }
}

async function searchAsShipped(
  engine: Engine,
  compose: Compose,
  admin: ApiUser,
  submitter: ApiUser,
): Promise<void> {
  const { victim, told, report } = await searched(engine, compose, admin, submitter)
  const { rights, secrets, files, processes, sockets } = report
  assert.deepEqual(
    { rights, secrets, files, processes, sockets },
    { rights: [], secrets: [], files: [], processes: [], sockets: [] },
  )
  // It has searched as a separate user without privileges, in an empty folder of its own.
  assert.ok(report.uid >= 200_000)
  assert.match(report.status, /CapPrm:\s0+;.*CapEff:\s0+;.*NoNewPrivs:\s1/)
  assert.ok(report.isWorkFolderEmpty && report.triedProcesses > 0 && told.files.length > 0)
  // It has inherited nothing from the server.
  const ofServer = Object.keys(compose.shipped.services['gpu-server']?.['environment'] ?? {})
  assert.deepEqual(
    report.environment.filter((name) => ofServer.includes(name)),
    [],
  )
  assert.deepEqual(
    report.inherited.filter((each) => / (socket:|\/(?!dev\/null$|proc\/))/.test(each)),
    [],
  )
  // It reaches controller and broker, which refuse it.
  assert.deepEqual(report.network.toSorted(byCodeUnits), ['controller:30080', 'host:30422', 'nats:4222'])
  assert.deepEqual(report.api, ['controller:30080 401'])
  assert.deepEqual(Object.keys(report.broker), ['none', 'unknown'])
  for (const answer of Object.values(report.broker)) assert.match(answer, /Authorization Violation/i)
  for (const path of [`/tasks/${victim}/logs`, '/tokens', '/audit'])
    assert.equal(await submitter.statusOf('GET', path), 403, path)
  await admin.reaches(victim, 'running')
}

/** The probe can find each file, socket and process that the task must not find. */
function findsAll(engine: Engine, compose: Compose, told: Told): void {
  const report = reportIn(
    asHostRoot(engine, compose.run('ps', '--quiet', 'gpu-server').trim(), probeCommand(told)),
  )
  assert.deepEqual(
    report.files,
    told.files.map(({ name }) => name),
  )
  for (const { name } of told.sockets) assert.ok(report.sockets.includes(name), name)
  assert.ok(
    report.secrets.some((path) => /\/environ$/.test(path)) &&
      report.secrets.some((path) => /\/fd\/3$/.test(path)),
  )
  for (const entry of ['environ', 'fd', 'cwd', 'root'])
    assert.ok(
      report.processes.some((each) => each.includes(entry)),
      entry,
    )
  assert.ok(Object.values(report.broker).includes('connected'), JSON.stringify(report.broker))
}

/** With all capabilities of this host, in the file system and the network of a container. */
function asHostRoot({ docker }: Engine, container: string, command: readonly string[]): string {
  const pid = docker('inspect', '--format', '{{.State.Pid}}', container).trim()
  const env = { PATH: '/usr/local/bin:/usr/bin:/bin' }
  return execFileSync('nsenter', ['--target', pid, '--mount', '--net', '--root', '--wd', ...command], {
    env,
    encoding: 'utf8',
  })
}

async function searchAsRoot(
  engine: Engine,
  compose: Compose,
  admin: ApiUser,
  submitter: ApiUser,
): Promise<void> {
  compose.addOptions('--task-user', 'root')
  compose.run('up', '-d', '--no-build', '-t', '20', 'gpu-server')
  const { report } = await searched(engine, compose, admin, submitter)
  assert.equal(report.uid, 0)
  assert.ok(report.rights.includes('umount /proc'))
  for (const volume of OF_SHARED_ROOT)
    assert.ok(
      report.files.some((name) => name.startsWith(`${volume}/`)),
      volume,
    )
  assert.ok(
    report.files.some((name) => name.endsWith('/secret')) &&
      report.secrets.some((path) => path.endsWith('/environ')),
  )
  assert.ok(report.sockets.length > 0)
  assert.ok(Object.values(report.broker).includes('connected'), JSON.stringify(report.broker))
}

interface Searched {
  readonly victim: string
  readonly told: Told
  readonly report: Report
}

/** A task of an administrator has secrets; a task of a submitter searches for them. */
async function searched(
  engine: Engine,
  compose: Compose,
  admin: ApiUser,
  submitter: ApiUser,
): Promise<Searched> {
  const victim = await admin.submit('victim', ['sh', '-c', `CANARY=${CANARY}; ${FOLLOWS}`])
  await admin.reaches(victim, 'running')
  await until(
    () => 'the victim holds its secret',
    () =>
      Promise.resolve(
        whatThereIs(engine, compose.shipped).files.some(
          ({ name }) => name.includes(victim) && name.endsWith('/secret'),
        ),
      ),
  )
  const told = whatThereIs(engine, compose.shipped)
  assert.ok(told.sockets.length > 1, 'the victim has a control socket')
  const search = await submitter.submit('search', probeCommand(told))
  await submitter.reaches(search, ...ENDED)
  const report = reportIn(await submitter.outputOf(search))
  step(`  ${summary(report)}`)
  return { victim, told, report }
}

function summary({ uid, triedProcesses, secrets, files, processes, sockets, network }: Report): string {
  const found = Object.entries({ secrets, files, processes, sockets, network }).map(
    ([name, { length }]) => `${length} ${name}`,
  )
  return `uid ${uid} saw ${triedProcesses} processes; open to it: ${found.join(', ')}`
}

function step(what: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${what}\n`)
}
