/** What reaches into a container of a task, and what a task reaches from it. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until, type LiveCluster } from '../support/live-cluster.ts'
import { cancel, outputOf, outputOfRun, reaches, startClient, submit } from './task-client.ts'
import { IMAGE, type TaskEngine } from './task-engine.ts'

const SLEEP = 'busybox sleep 1000; :'
const PORT = 8_000
const fetchFrom = (address: string, port: number | string): string =>
  `printf "GET /g HTTP/1.0\r\n\r\n" | busybox nc -w 2 ${address} ${port} 2>/dev/null | busybox tail -n 1`
/** Answers requests at the address, by default at all addresses. */
const serve = (address = ''): string =>
  `echo GREETING > /tmp/g; busybox httpd -f -p ${address}${PORT} -h /tmp`
const SPACES = ['net', 'mnt', 'pid', 'ipc', 'uts']
const SHOW_SPACES = SPACES.map((name) => `busybox readlink /proc/self/ns/${name}`).join('; ')

// ── exec ─────────────────────────────────────────────────────────────────────

export async function executes(live: LiveCluster, socketPath: string): Promise<void> {
  const id = await submit(
    live,
    'entered',
    ['sh', '-c', `busybox id -u; ${SHOW_SPACES}; echo mine > /headroom/work/note; ${SLEEP}`],
    { env: { TOLD: 'told-51ce' }, pids_limit: 40 },
  )
  await reaches(live, id, 'running')
  const lines = async (): Promise<readonly string[]> => (await outputOf(live, id)).trim().split('\n')
  await until('the task has printed', async () => (await lines()).length === 1 + SPACES.length)
  const [user = '', ...spaces] = await lines()
  const paths = [live.path('boxes'), socketPath, live.path('boxes/work')]
  const look = `for p in ${paths.join(' ')}; do [ -e "$p" ] && echo "sees $p"; done; echo end`
  const script =
    `busybox id -u; ${SHOW_SPACES}; busybox cat /headroom/work/note; echo "$TOLD $HEADROOM_TASK_ID"; ` +
    `busybox grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/self/status | busybox tr -d "\\t"; ${look}; exit 7`
  const client = startClient(live, 'exec', 'entered', '--', 'sh', '-c', script)
  assert.equal(await client.ended, 7, client.output())
  assert.deepEqual(client.output().trim().split('\n'), [
    user,
    ...spaces,
    'mine',
    `told-51ce ${id}`,
    'CapEff:0000000000000000',
    'NoNewPrivs:1',
    'Seccomp:2',
    'end',
  ])
  assert.match(user, /^30\d{4}$/)
  // Negative control: the host has other namespaces, and sees each path.
  SPACES.forEach((name, i) => assert.notEqual(spaces[i], readlinkSync(`/proc/self/ns/${name}`), name))
  const onHost = execFileSync('sh', ['-c', look], { encoding: 'utf8' })
  assert.deepEqual(onHost.trim().split('\n'), [...paths.map((path) => `sees ${path}`), 'end'])
  await cancel(live, id)
}

// ── port-forward ─────────────────────────────────────────────────────────────

/** @param hostPort on which the host listens */
export async function forwards(live: LiveCluster, hostPort: string): Promise<void> {
  const id = await submit(live, 'listens', ['sh', '-c', serve('127.0.0.1:')])
  await reaches(live, id, 'running')
  const client = startClient(live, 'port-forward', 'listens', `0:${PORT}`, `0:${hostPort}`)
  const ports = (): readonly string[] =>
    [...client.output().matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port = '']) => port)
  await until('both ports are open', () => ports().length === 2).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${client.output()}`)
  })
  const [inTask = '', onHost = ''] = ports()
  const isAnswered = (): boolean => greetingAt('127.0.0.1', inTask) === 'GREETING\n'
  await until('the server in the container answers', isAnswered, 20_000).catch(async (error: unknown) => {
    throw new Error(`${String(error)}: ${client.output()} ${await outputOf(live, id)}`)
  })
  assert.equal(firstWordAt(onHost), '')
  await until('the refusal is said', () => client.output().includes(`listens on TCP port ${hostPort}`))
  // Negative control: something listens on that port of the host, and nothing on the port of the task.
  assert.equal(firstWordAt(hostPort), 'INFO')
  assert.equal(greetingAt('127.0.0.1', PORT), '')
  client.child.kill('SIGINT')
  await client.ended
  await cancel(live, id)
}

function firstWordAt(port: string): string {
  const { stdout } = spawnSync('busybox', ['nc', '-w', '2', '127.0.0.1', port], {
    encoding: 'utf8',
    input: '',
  })
  return stdout.split(' ')[0] ?? ''
}

/** Of the server in the container; empty: it is not reached. */
function greetingAt(address: string, port: number | string): string {
  return spawnSync('sh', ['-c', fetchFrom(address, port)], { encoding: 'utf8' }).stdout
}

// ── data folders ─────────────────────────────────────────────────────────────

/** Returns the options of a server that offers two data folders. */
export function dataFolders(folder: string): readonly string[] {
  for (const [name, mode] of [
    ['datasets', 0o755],
    ['scratch', 0o777],
  ] as const) {
    mkdirSync(join(folder, name))
    chmodSync(join(folder, name), mode)
    writeFileSync(join(folder, name, 'file'), `content of ${name}\n`)
  }
  chmodSync(folder, 0o755)
  return [
    '--mount',
    `datasets=${join(folder, 'datasets')}`,
    '--mount',
    `scratch=${join(folder, 'scratch')}:rw`,
  ]
}

export async function mounts(live: LiveCluster, folder: string): Promise<void> {
  const script =
    'busybox ls /mnt 2>/dev/null; busybox cat /mnt/datasets/file; echo "$HEADROOM_MOUNT_DATASETS"; ' +
    'for d in datasets scratch; do echo x 2>/dev/null > /mnt/$d/new && echo "wrote $d"; done; :'
  assert.equal(
    await outputOfRun(live, 'reads', script, { mounts: ['datasets'] }),
    'datasets\ncontent of datasets\n/mnt/datasets\n',
  )
  // Negative control: a folder that is offered as writable can be written, by the same user.
  assert.equal(
    await outputOfRun(live, 'writes', script, { mounts: ['datasets', 'scratch'] }),
    'datasets\nscratch\ncontent of datasets\n/mnt/datasets\nwrote scratch\n',
  )
  assert.equal(readFileSync(join(folder, 'scratch/new'), 'utf8'), 'x\n')
  assert.ok(!existsSync(join(folder, 'datasets/new')))
  assert.equal(await outputOfRun(live, 'none', 'busybox ls /mnt 2>/dev/null; :'), '')
}

// ── other tasks ──────────────────────────────────────────────────────────────

export async function keepsApart(live: LiveCluster, engine: TaskEngine): Promise<void> {
  const address = 'busybox ip -4 -o addr show eth0'
  const server = await submit(live, 'server', ['sh', '-c', `${address}; ${serve()}`])
  await reaches(live, server, 'running')
  const ip = async (): Promise<string> => /inet ([0-9.]+)/.exec(await outputOf(live, server))?.[1] ?? ''
  await until('the server has its address', async () => (await ip()) !== '')
  const at = await ip()
  await until('the host reaches it', () => greetingAt(at, PORT) === 'GREETING\n')
  const reach = (to: string): string => `${fetchFrom(to, PORT)}; echo end`
  assert.equal(await outputOfRun(live, 'neighbour', reach(at)), 'end\n')
  assert.equal(
    await outputOfRun(live, 'itself', `${serve()} & busybox sleep 1; ${reach('127.0.0.1')}`),
    'GREETING\nend\n',
  )
  // Negative control: two containers on the engine's own network reach each other in the same way.
  engine.run('--detach', '--name', 'plain', IMAGE, 'sh', '-c', `${address}; ${serve()}`)
  const plain = /inet ([0-9.]+)/.exec(engine.logs('plain'))?.[1] ?? assert.fail(engine.logs('plain'))
  assert.equal(engine.run('--rm', IMAGE, 'sh', '-c', reach(plain)), 'GREETING\nend\n')
  engine.remove('plain')
  await cancel(live, server)
}
