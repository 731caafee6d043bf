/** Tasks in containers of a stand-in for apptainer, with real guards, namespaces and signals. */
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
  chmodSync,
  chownSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import type { LaunchSpec } from '../../gpu-server/guard/guards.ts'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import { ApptainerHost, type StubAnswers } from '../support/apptainer-host.ts'
import {
  guardWorld,
  isGone,
  isRoot,
  newGuardFolder,
  shellSpec,
  startGuardServer,
  until,
  type GuardWorld,
} from '../support/guard-world.ts'

const LONG_MS = 600_000
const USER = { uid: 212_345, gid: 212_345, ownGroup: 212_345 }

async function world(answers: StubAnswers = {}) {
  const folder = newGuardFolder()
  chmodSync(folder, 0o755)
  const host = new ApptainerHost()
  host.answer(answers)
  return { ...(await guardWorld({ folder, containers: await host.containers(folder) })), host }
}

function contained(folder: string, script: string, more: Partial<LaunchSpec> = {}): LaunchSpec {
  const workingDirectory = join(folder, 'work')
  mkdirSync(workingDirectory, { recursive: true })
  chownSync(workingDirectory, USER.uid, USER.gid)
  return shellSpec('boxed', script, {
    user: USER,
    workingDirectory,
    container: { image: 'team/train:1', devices: [], epoch: 1, mounts: [] },
    ...more,
  })
}

const recordsIn = (folder: string) => readdirSync(join(folder, 'apptainer/containers'))
const apptainerPid = (folder: string) => {
  const [name = ''] = recordsIn(folder)
  return Number(readFileSync(join(folder, 'apptainer/containers', name), 'utf8').split(' ')[0])
}

async function launch({ guards }: GuardWorld, spec: LaunchSpec): Promise<void> {
  expect(await guards.launch(spec)).toEqual({ error: null })
}

describe.runIf(isRoot)('a task in a container of apptainer', () => {
  it('has its output, exit code, user and the variables of the image, and leaves nothing', async () => {
    const boxed = await world()
    const script = 'id -u; id -G; echo $IMAGE_SAYS $OWN; pwd; echo lost >&2; exit 7'
    await launch(boxed, contained(boxed.folder, script, { env: { OWN: 'mine', PATH: '/bin' } }))
    expect((await boxed.exitOf('boxed')).exit).toEqual({ code: 7, signal: null })
    expect(await boxed.output('boxed')).toBe('212345\n212345\nhello mine\n/\n')
    expect(await boxed.output('boxed', 'stderr')).toBe('lost\n')
    await until('its record is removed', () => recordsIn(boxed.folder).length === 0)
    expect(boxed.faults).toEqual([])
  })

  it('reads the data folders it asked for and no other file of the host', async () => {
    const boxed = await world()
    const source = join(boxed.folder, 'data, "sets"')
    mkdirSync(source)
    writeFileSync(join(source, 'set'), 'data')
    const mounts = [{ name: 'datasets', source, isReadOnly: true }]
    const script = [
      'cat /mnt/datasets/set; touch /mnt/datasets/new || echo denied',
      `ls ${boxed.folder} || echo hidden; echo kept > /headroom/work/result`,
    ].join('\n')
    const container = { image: 'team/train:1', devices: [], epoch: 1, mounts }
    await launch(boxed, contained(boxed.folder, script, { container }))
    await boxed.exitOf('boxed')
    expect(await boxed.output('boxed')).toBe('datadenied\nhidden\n')
    expect(readFileSync(join(boxed.folder, 'work/result'), 'utf8')).toBe('kept\n')
  })

  it('is stopped and resumed with all its processes, and gets SIGTERM', async () => {
    const boxed = await world()
    const script =
      'trap "echo asked; exit 3" TERM; sleep 600 & (setsid sleep 601 &); : > /headroom/work/ready; wait'
    await launch(boxed, contained(boxed.folder, script))
    const { guards } = boxed
    await until('it waits', () => existsSync(join(boxed.folder, 'work/ready')))
    await guards.suspend('boxed', 1)
    const pids = guards.processIds('boxed', 1)
    expect(pids).toHaveLength(3)
    expect(pids.map(stateOf)).toEqual(pids.map(() => 'T'))
    await guards.resume('boxed', 1)
    expect(pids.map(stateOf)).not.toContain('T')
    guards.stop('boxed', 1, LONG_MS)
    expect((await boxed.exitOf('boxed')).exit).toEqual({ code: 3, signal: null })
    expect(await boxed.output('boxed')).toBe('asked\n')
    await until('nothing is left', () => pids.every(isGone))
  })

  it('lives on when its server is killed, and is found by the next one', async () => {
    const folder = newGuardFolder()
    const host = new ApptainerHost()
    const server = await startGuardServer(folder, true, undefined, host.folder)
    await server.ask({ call: 'lease', untilMono: bootTime() + LONG_MS, lengthMs: LONG_MS })
    expect(await server.ask({ call: 'launch', spec: contained(folder, 'sleep 1000') })).toEqual({
      error: null,
    })
    server.child.kill('SIGKILL')
    const containers = await host.containers(folder)
    const next = await guardWorld({ folder, containers })
    expect(await next.guards.adopt()).toMatchObject([{ taskId: 'boxed', state: 'running' }])
    expect(recordsIn(folder)).toHaveLength(1)
    const pid = apptainerPid(folder)
    next.guards.kill('boxed', 1)
    await next.exitOf('boxed')
    await until('apptainer has ended', () => isGone(pid) && recordsIn(folder).length === 0)
  })

  it('that apptainer does not start ends with the words of apptainer, and leaves nothing', async () => {
    const boxed = await world({ exec: 'no space left on device' })
    expect(await boxed.guards.launch(contained(boxed.folder, 'true'))).toEqual({
      error: 'container: no space left on device',
      refused: { cause: 'task', code: 'container_not_started' },
    })
    expect(readdirSync(join(boxed.folder, 'guards'))).toEqual([])
    expect(recordsIn(boxed.folder)).toEqual([])
  })

  it('is not handed to a process that an image starts before the init', async () => {
    const python = [
      'import socket, time',
      's = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)',
      's.connect("/headroom/init")',
      'time.sleep(600)',
    ].join('; ')
    const boxed = await world({ imageScript: `python3 -c '${python}' & sleep 2` })
    const plain = contained(boxed.folder, 'echo ran')
    expect(await boxed.guards.launch({ ...plain, user: { uid: 0, gid: 0 } })).toEqual({
      error: 'container: a process other than the init of the container connected',
      refused: { cause: 'task', code: 'container_not_started' },
    })
    await until('nothing is left', () => recordsIn(boxed.folder).length === 0)
  })

  it('whose server is killed while apptainer hangs leaves neither apptainer nor a task', async () => {
    const folder = newGuardFolder()
    const host = new ApptainerHost()
    host.answer({ exec: 'hang' })
    const server = await startGuardServer(folder, true, undefined, host.folder)
    await server.ask({ call: 'lease', untilMono: bootTime() + LONG_MS, lengthMs: LONG_MS })
    server.ask({ call: 'launch', spec: contained(folder, `touch ${folder}/ran`) }).catch(() => {})
    await until('apptainer runs', () => host.calls('exec').length === 1 && recordsIn(folder).length === 1)
    const pid = apptainerPid(folder)
    server.child.kill('SIGKILL')
    const next = await guardWorld({ folder, containers: await host.containers(folder) })
    await next.guards.adopt()
    await until('apptainer is killed', () => isGone(pid) && recordsIn(folder).length === 0)
    expect(existsSync(join(folder, 'ran'))).toBe(false)
  })
})
