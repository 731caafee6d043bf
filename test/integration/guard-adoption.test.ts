import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import {
  attemptFolder,
  guardWorld,
  isGone,
  membersOf,
  newGuardFolder,
  pidOf,
  shellSpec,
  startGuardServer,
  until,
} from '../support/guard-world.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'

const TREE = '(setsid sleep 60 &); sleep 60 & wait'
const UNKNOWN = { code: null, signal: null }

describe.each([
  ['isolated', true],
  ['plain', false],
])('a restart of the server (%s)', { concurrent: true }, (_, isIsolated) => {
  it('adopts running, suspended and ended tasks, with their records and output', async () => {
    const folder = newGuardFolder()
    const first = await startGuardServer(folder, isIsolated)
    await first.ask({ call: 'lease', untilMono: bootTime() + 600_000, lengthMs: 600_000 })
    for (const [taskId, script] of [
      ['runs', `echo hello; ${TREE}`],
      ['suspended', TREE],
      ['ended', 'exit 4'],
    ] as const)
      expect(await first.ask({ call: 'launch', spec: shellSpec(taskId, script) })).toEqual({ error: null })
    await first.ask({ call: 'suspend', taskId: 'suspended' })
    first.child.kill('SIGKILL')
    await until('one has ended', () => isGone(pidOf(attemptFolder(folder, 'ended'), 'guard')))
    const next = await guardWorld({ folder, isIsolated })
    const found = (await next.guards.adopt()).toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1))
    expect(found).toEqual([
      {
        taskId: 'ended',
        attempt: 1,
        record: { note: 'ended' },
        state: 'ended',
        exit: { code: 4, signal: null },
        didLeaseEnd: false,
      },
      {
        taskId: 'runs',
        attempt: 1,
        record: { note: 'runs' },
        state: 'running',
        exit: null,
        didLeaseEnd: false,
      },
      {
        taskId: 'suspended',
        attempt: 1,
        record: { note: 'suspended' },
        state: 'suspended',
        exit: null,
        didLeaseEnd: false,
      },
    ])
    expect(next.exits).toEqual([])
    expect(await next.output('runs')).toBe('hello\n')
    await next.guards.resume('suspended', 1)
    for (const taskId of ['runs', 'suspended']) {
      next.guards.kill(taskId, 1)
      expect((await next.exitOf(taskId)).exit?.signal).toBe('SIGKILL')
      next.guards.forget(taskId, 1)
    }
    next.guards.close()
    const last = await guardWorld({ folder, isIsolated })
    await until('two are forgotten', () =>
      ['runs', 'suspended'].every((id) => isFile(`${attemptFolder(folder, id)}/forgotten`)),
    )
    expect((await last.guards.adopt()).map((task) => task.taskId)).toEqual(['ended'])
  })

  it('finds a task whose guard was killed as ended with an unknown exit', async () => {
    const folder = newGuardFolder()
    const first = await startGuardServer(folder, isIsolated)
    expect(await first.ask({ call: 'launch', spec: shellSpec('orphan', TREE) })).toEqual({ error: null })
    const attempt = attemptFolder(folder, 'orphan')
    const members = await until('it runs', () => membersOf(attempt).length === 3 && membersOf(attempt))
    first.child.kill('SIGKILL')
    process.kill(pidOf(attempt, 'guard'), 'SIGKILL')
    await until('the task died with its guard', () => members.every(isGone))
    const next = await guardWorld({ folder, isIsolated })
    expect(await next.guards.adopt()).toEqual([
      {
        taskId: 'orphan',
        attempt: 1,
        record: { note: 'orphan' },
        state: 'ended',
        exit: UNKNOWN,
        didLeaseEnd: false,
      },
    ])
  })

  it('kills the remaining processes when guard and keeper died at once', async () => {
    const folder = newGuardFolder()
    const first = await startGuardServer(folder, isIsolated)
    expect(await first.ask({ call: 'launch', spec: shellSpec('both', TREE) })).toEqual({ error: null })
    const attempt = attemptFolder(folder, 'both')
    const members = await until('it runs', () => membersOf(attempt).length === 3 && membersOf(attempt))
    first.child.kill('SIGKILL')
    const pids = [pidOf(attempt, 'guard'), pidOf(attempt, 'keeper')]
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    for (const pid of pids) process.kill(pid, 'SIGKILL')
    const next = await guardWorld({ folder, isIsolated })
    expect((await next.guards.adopt()).map(({ state, exit }) => ({ state, exit }))).toEqual([
      { state: 'ended', exit: UNKNOWN },
    ])
    expect(members.every(isGone)).toBe(true)
  })

  it('is not needed when a guard dies: the running server reports the end', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('live', TREE)
    const attempt = attemptFolder(world.folder, 'live')
    const members = await until('it runs', () => membersOf(attempt).length === 3 && membersOf(attempt))
    process.kill(pidOf(attempt, 'guard'), 'SIGKILL')
    expect((await world.exitOf('live')).exit).toEqual(UNKNOWN)
    expect(members.every(isGone)).toBe(true)
    expect(world.faults).toEqual([])
  })

  it('is not needed when a keeper dies: the guard ends the task', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('kept', TREE)
    const attempt = attemptFolder(world.folder, 'kept')
    const members = await until('it runs', () => membersOf(attempt).length === 3 && membersOf(attempt))
    process.kill(pidOf(attempt, 'keeper'), 'SIGKILL')
    expect((await world.exitOf('kept')).exit).toEqual({ code: null, signal: 'SIGKILL' })
    expect(members.every(isGone)).toBe(true)
  })
})

describe('the folder of an attempt', { concurrent: true }, () => {
  it(
    'with a stopped guard means that the task is ended, because such a guard enforces no lease',
    { timeout: 300_000 },
    async () => {
      const folder = newGuardFolder()
      const first = await startGuardServer(folder, true)
      expect(await first.ask({ call: 'launch', spec: shellSpec('still', TREE) })).toEqual({ error: null })
      first.child.kill('SIGKILL')
      const attempt = attemptFolder(folder, 'still')
      const members = membersOf(attempt)
      process.kill(pidOf(attempt, 'guard'), 'SIGSTOP')
      const next = await guardWorld({ folder })
      expect((await next.guards.adopt()).map(({ state }) => state)).toEqual(['ended'])
      expect(members.every(isGone)).toBe(true)
    },
  )

  it('in which nothing ran is removed, and a late guard runs nothing', async () => {
    const world = await guardWorld()
    const attempt = attemptFolder(world.folder, 'never')
    mkdirSync(`${world.folder}/guards/unwritten.1`)
    mkdirSync(attempt)
    writeFileSync(
      `${attempt}/task.json`,
      JSON.stringify({ taskId: 'never', attempt: 1, record: 5, mark: 'never.1.x' }),
    )
    const died = attemptFolder(world.folder, 'died')
    mkdirSync(died)
    writeFileSync(
      `${died}/task.json`,
      JSON.stringify({ taskId: 'died', attempt: 1, record: 5, mark: 'died.1.x' }),
    )
    writeFileSync(`${died}/guard`, `guard ${process.pid} 1\nboot another\n`)
    expect(await world.guards.adopt()).toEqual([])
    expect(readdirSync(`${world.folder}/guards`)).toEqual([])
    const { startGuard } = await import('../../gpu-server/guard/guard-launch.ts')
    const { guardProgram } = await import('../../gpu-server/guard/guard-program.ts')
    const { bootId } = await import('../../gpu-server/guard/guard-lease.ts')
    const leasePath = `${world.folder}/lease.${bootId()}`
    const start = {
      program: await guardProgram(),
      folder: attempt,
      leasePath,
      cgroup: null,
      isIsolated: false,
      mark: 'never.1.x',
      limitCgroups: [],
      container: null,
    }
    expect(await startGuard(start, shellSpec('never', `touch ${attempt}/ran`), false)).toEqual({
      error: `guard: folder ${attempt}: No such file or directory`,
      refused: { cause: 'host', code: 'guard_failed' },
    })
    expect(isFile(`${attempt}/ran`)).toBe(false)
  })

  it('with a record of an earlier boot, or with reused pids, ends no process', async () => {
    const world = await guardWorld()
    await world.sh('bystander', 'exec sleep 60')
    const other = pidOf(attemptFolder(world.folder, 'bystander'), 'command')
    const attempt = attemptFolder(world.folder, 'old')
    mkdirSync(attempt)
    writeFileSync(
      `${attempt}/task.json`,
      JSON.stringify({ taskId: 'old', attempt: 1, record: null, mark: 'old.1.x' }),
    )
    writeFileSync(`${attempt}/guard`, `guard ${process.pid} 1\nboot another\n`)
    writeFileSync(
      `${attempt}/started`,
      `guard ${process.pid} 1\nkeeper ${other} 1\ncommand ${other} 1\ncgroup \nboot another\n`,
    )
    const next = await guardWorld({ folder: world.folder })
    const found = await next.guards.adopt()
    expect(found.find((task) => task.taskId === 'old')).toMatchObject({ state: 'ended', exit: UNKNOWN })
    expect(stateOf(other)).toBe('S')
    next.guards.kill('bystander', 1)
    await next.exitOf('bystander')
  })

  it('that is removed ends its task, because no server could find the task any more', async () => {
    const world = await guardWorld()
    await world.sh('removed', TREE)
    const attempt = attemptFolder(world.folder, 'removed')
    const members = await until('it runs', () => membersOf(attempt).length === 3 && membersOf(attempt))
    const guard = pidOf(attempt, 'guard')
    const cgroup = /^cgroup (.+)$/m.exec(readFileSync(`${attempt}/started`, 'utf8'))?.[1]
    rmSync(attempt, { recursive: true })
    await until('it is gone', () => members.every(isGone) && isGone(guard))
    expect((await world.exitOf('removed')).exit).toEqual({ code: null, signal: 'SIGKILL' })
    if (cgroup !== undefined) expect(existsSync(cgroup)).toBe(false)
  })
})

function isFile(path: string): boolean {
  try {
    readFileSync(path)
    return true
  } catch {
    return false
  }
}
