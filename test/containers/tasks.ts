/**
 * In separate namespaces (main.ts): tasks in containers of a real engine. They are confined, obey signals,
 * stop while they are swapped out, and survive a storm of kills: no task is lost or runs twice, and no
 * container is left.
 * CONTAINER_TASKS, CONTAINER_KILLS and CONTAINER_SEED set the size of the storm.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { LiveCluster, until, type Member } from '../support/live-cluster.ts'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import { dataFolders, executes, forwards, keepsApart, mounts } from './task-reach.ts'
import { credentials, pulls } from './task-registry.ts'
import { runStorm } from './task-storm.ts'
import { outputOf, reaches, startClient, step, submit, taskOf } from './task-client.ts'
import { IMAGE, startTaskEngine, type TaskEngine } from './task-engine.ts'

const [folder = '', kind = 'docker'] = process.argv.slice(2)
const CANARY = 'canary-4f1c'
/** Of a variable of a task: only its guard passes it. */
const VALUE = 'value-77ab'
/** Identifies the process of an operator by its arguments. */
const EXEC_SECONDS = '987654'
const INVENTORY = 'gpus:\n  - { vram_mib: 8Gi, swap: { out_mib_per_s: 100000, in_mib_per_s: 100000 } }\n'
/** A task that is swapped out stays out. */
const QUIET = { safety_reserve_mib: 0, heartbeat_seconds: 1, eager_swap_in_seconds: null, max_requeues: null }
const STORMY = {
  ...QUIET,
  default_vram_overcommit_percent: 200,
  idle_swap_out_seconds: 1,
  max_residency_seconds: 2,
  swap_in_probe_seconds: 1,
  eager_swap_in_seconds: 0,
}

/** Prints what it finds; the same text runs on the host, where it must find everything. */
const SEARCH = [
  'b=busybox; echo "user $($b id -u)"',
  '$b grep -E "^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp):" /proc/self/status | $b tr -d "\\t"',
  'for p in $PATHS; do [ -e "$p" ] && echo "sees $p"; done',
  'secret() { $b grep -q $CANARY_TEXT "$1" 2>/dev/null; }',
  '$b find $ROOTS -xdev -type f 2>/dev/null | while read f; do secret "$f" && echo "reads $f"; done',
  'for p in /proc/[0-9]*; do [ "$p" = "/proc/$$" ] || ! secret $p/environ || echo "reads process"; done',
  '$b ls /proc/1/fd >/dev/null 2>&1 && echo "opens the init"',
  'greeting="$($b nc -w 2 127.0.0.1 $PORT </dev/null 2>/dev/null | $b head -c 4)"',
  '[ "$greeting" = INFO ] && echo "reaches the loopback"',
  'echo "end"',
].join('\n')

assert.ok(kind === 'docker' || kind === 'podman', kind)
const data = join(folder, 'offered')
mkdirSync(data)
step(`${kind} starts`)
const engine = await startTaskEngine(kind, folder)
const cluster = await LiveCluster.start()
try {
  await cluster.send('PUT', '/config', QUIET)
  const server = await cluster.startServer(
    'boxes',
    INVENTORY,
    { ...engine.env, NODE_REGISTRY_CREDENTIALS: credentials(folder) },
    ...['--container-runtime', kind, '--idle-after', '1s', '--allow-attach'],
    ...['--task-uids', '300000-301023', ...dataFolders(data)],
  )
  await prove(engine, cluster, server)
} catch (error) {
  process.stderr.write(`${cluster.controller.output.slice(-2_000)}\n`)
  throw error
} finally {
  step('the end')
  await cluster.end()
  await engine.stop()
}

async function prove(of: TaskEngine, live: LiveCluster, server: Member): Promise<void> {
  step('a task sees no file, socket or process of others, and not the loopback of the host')
  await confines(of, live)
  step('Ctrl-C reaches the program as SIGTERM')
  await interrupts(live)
  step('the engine stores no variable of a task; all processes stop while it is swapped out')
  await stopsWhenSwapped(of, live)
  step('a task that needs more memory than its limit ends, on the host too')
  await limits(live)
  step('a missing command is a reason of the task')
  await refuses(live)
  step('exec runs in the container, as the user of the task')
  await executes(live, of.socketPath)
  step('port-forward reaches a server on the loopback of the container, and none of the host')
  await forwards(live, new URL(live.natsUrl).port)
  step('a data folder is there for the tasks that name it, and is not written')
  await mounts(live, data)
  step('tasks do not reach each other')
  await keepsApart(live, of)
  step(
    'images are pulled before the start, with a login; a missing one ends the task, a registry is waited for',
  )
  await pulls(live, folder)
  step('a storm of kills')
  await live.send('PUT', '/config', STORMY)
  const verdict = await runStorm(live, server, {
    seed: process.env['CONTAINER_SEED'] ?? '1',
    tasks: Number(process.env['CONTAINER_TASKS'] ?? 16),
    kills: Number(process.env['CONTAINER_KILLS'] ?? 4),
    atOnce: 8,
    image: IMAGE,
  })
  step(`  ${JSON.stringify(verdict)}`)
  const { lost, twice } = verdict
  assert.deepEqual({ lost, twice }, { lost: [], twice: [] })
  assert.equal(verdict.completed, verdict.tasks)
  assert.ok(verdict.swapOuts > 0, 'the storm swapped tasks')
  await until('no container is left', () => of.containers().length === 0, 60_000).catch(() =>
    assert.deepEqual(of.containers(), []),
  )
  assert.deepEqual(
    of.networks().filter((name) => !name.startsWith('headroom-tasks-')),
    [],
  )
  process.stdout.write(
    `ok: ${of.kind}: ${verdict.tasks} tasks, ${verdict.swapOuts} swap-outs, 0 lost, 0 twice\n`,
  )
}

// ── what a task can reach ─────────────────────────────────────────────────────

async function confines(of: TaskEngine, live: LiveCluster): Promise<void> {
  const victim = await submit(live, 'victim', [
    'sh',
    '-c',
    `export CANARY=${CANARY}; for f in /headroom/work /tmp; do echo $CANARY > $f/secret; done; ` +
      'busybox sleep 1000; :',
  ])
  await reaches(live, victim, 'running')
  const secret = join(live.path('boxes'), 'work', `${victim}.1`, 'secret')
  await until('the victim holds its secret', () => existsSync(secret))
  const paths = [live.path('boxes'), live.path('boxes/guards'), secret, of.socketPath]
  const { port } = new URL(live.natsUrl)
  const told = (roots: string): string =>
    `PATHS="${paths.join(' ')}"; ROOTS="${roots}"; PORT=${port}; CANARY_TEXT=${CANARY}\n${SEARCH}`
  const search = await submit(live, 'search', ['sh', '-c', told('/bin /tmp /etc /headroom')])
  await reaches(live, search, 'completed')
  const found = (await outputOf(live, search)).trim().split('\n')
  assert.deepEqual(found.slice(1), [
    'CapPrm:0000000000000000',
    'CapEff:0000000000000000',
    'CapBnd:0000000000000000',
    'NoNewPrivs:1',
    'Seccomp:2',
    'end',
  ])
  assert.match(found[0] ?? '', /^user 30\d{4}$/)
  // Negative control: with the rights of the host the same text finds each of them.
  const env = { PATH: process.env['PATH'] ?? '', CANARY }
  const onHost = execFileSync('sh', ['-c', told(live.path('boxes/work'))], { env, encoding: 'utf8' })
  for (const path of paths) assert.ok(onHost.includes(`sees ${path}\n`), path)
  for (const words of [`reads ${secret}`, 'reads process', 'opens the init', 'reaches the loopback'])
    assert.ok(onHost.includes(`${words}\n`), `${words} in ${onHost}`)
  await live.send('DELETE', `/tasks/${victim}`)
  await reaches(live, victim, 'cancelled')
}

// ── signals ──────────────────────────────────────────────────────────────────

async function interrupts(live: LiveCluster): Promise<void> {
  const script = 'trap "echo caught TERM; exit 0" TERM; echo ready; while :; do busybox sleep 0.1; done'
  const command = ['--', 'sh', '-c', script]
  const client = startClient(live, 'run', '--image', IMAGE, '--vram', '1Gi', ...command)
  await until('the program runs', () => client.output().includes('ready')).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${client.output()}`)
  })
  client.child.kill('SIGINT')
  await client.ended
  assert.match(client.output(), /caught TERM/)
}

async function stopsWhenSwapped(of: TaskEngine, live: LiveCluster): Promise<void> {
  const script =
    'busybox sleep 1000 & (while :; do busybox sleep 1; done) & while :; do busybox sleep 1; done'
  const id = await submit(live, 'forks', ['sh', '-c', script], { env: { TOLD: VALUE } })
  await reaches(live, id, 'running')
  await until('its processes run', () => processesOf(id).length >= 3)
  // No descendant of its init: only the container's control group contains it.
  const [container = ''] = (of.containers()[0] ?? '').split(' ')
  const [pid = 0] = processesOf(id)
  assert.ok(textOf(`/proc/${pid}/environ`).includes(`TOLD=${VALUE}\0`), 'the task has its variable')
  assert.ok(!of.inspect(container).includes(VALUE), 'the engine does not')
  of.exec(container, 'busybox', 'sleep', EXEC_SECONDS)
  await until('the process of the operator runs', () => executed().length === 1)
  const swapOut = (): Promise<boolean> =>
    live.send('POST', `/tasks/${id}/swap-out`).then(
      () => true,
      () => false, // It counts as busy until it was seen idle.
    )
  await until('it is idle', swapOut)
  await until('it is swapped out', async () => (await taskOf(live, id)).residency === 'swapped_out')
  const stopped = [...processesOf(id), ...executed()]
  assert.ok(stopped.length >= 4, `${stopped.length} processes`)
  assert.deepEqual(
    stopped.map((pid) => stateOf(pid)),
    stopped.map(() => 'T'),
  )
  await live.send('POST', `/tasks/${id}/swap-in`)
  await until('it is back in VRAM', async () => (await taskOf(live, id)).residency === 'resident')
  await until('all of it runs again', () =>
    [...processesOf(id), ...executed()].every((pid) => stateOf(pid) !== 'T'),
  )
  await live.send('DELETE', `/tasks/${id}`)
  await reaches(live, id, 'cancelled')
  assert.deepEqual([...processesOf(id), ...executed()], [])
}

async function limits(live: LiveCluster): Promise<void> {
  const script = 'x=$(busybox head -c 300000000 /dev/zero | busybox tr "\\0" a); exit 3'
  for (const image of [IMAGE, null]) {
    const command = image === null ? ['sh', '-c', script.replaceAll('busybox ', '')] : ['sh', '-c', script]
    const id = await submit(live, 'greedy', command, { image, memory_mib: 64, cpus: 1, pids_limit: 50 })
    await reaches(live, id, 'failed')
    const { end_code, exit_code } = await live.get<Record<string, unknown>>(`/tasks/${id}`)
    assert.deepEqual({ end_code, exit_code }, { end_code: 'memory_limit', exit_code: 137 })
  }
}

/** All processes of a task, as root of the host sees them. */
function processesOf(id: string): readonly number[] {
  return processesWhere((pid) => textOf(`/proc/${pid}/environ`).includes(`HEADROOM_TASK_ID=${id}\0`))
}

function executed(): readonly number[] {
  return processesWhere((pid) => textOf(`/proc/${pid}/cmdline`) === `busybox\0sleep\0${EXEC_SECONDS}\0`)
}

function processesWhere(isOne: (pid: string) => boolean): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isOne(name))
    .map(Number)
    .filter((pid) => !['Z', 'X', null].includes(stateOf(pid)))
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

// ── refusals ─────────────────────────────────────────────────────────────────

async function refuses(live: LiveCluster): Promise<void> {
  const command = await submit(live, 'no-command', ['nonesuch'])
  await until('the missing command is named', async () =>
    (await taskOf(live, command)).start_refusals.some(({ code }) => code === 'command_not_found'),
  )
  await live.send('DELETE', `/tasks/${command}`)
  const { items } = await live.get<{ readonly items: readonly { readonly auto_cordon: object | null }[] }>(
    '/nodes',
  )
  assert.deepEqual(
    items.map(({ auto_cordon: cordon }) => cordon),
    [null],
  )
}
