import { execFile } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
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

const TREE = '(setsid sleep 60 &); sleep 60 & wait'
/** Long enough for a launch on a slow machine. */
const LENGTH_MS = 3_000

describe.each([
  ['isolated', true],
  ['plain', false],
])('the run lease (%s)', { concurrent: true }, (_, isIsolated) => {
  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'ends a leased task, and no other, while the server is missing because of %s',
    async (signal) => {
      const folder = newGuardFolder()
      const server = await startGuardServer(folder, isIsolated)
      const end = bootTime() + LENGTH_MS
      await server.ask({ call: 'lease', untilMono: end, lengthMs: LENGTH_MS })
      expect(
        await server.ask({ call: 'launch', spec: shellSpec('leased', TREE, { isLeased: true }) }),
      ).toEqual({ error: null })
      expect(await server.ask({ call: 'launch', spec: shellSpec('waits', TREE) })).toEqual({ error: null })
      const leased = attemptFolder(folder, 'leased')
      const waits = attemptFolder(folder, 'waits')
      await until('both run', () => membersOf(leased).length === 3 && membersOf(waits).length === 3)
      server.child.kill(signal)
      const stopped = await until('it is stopped', () => {
        const members = membersOf(leased)
        return members.length > 0 && members.every((pid) => stateOf(pid) === 'T') && members
      })
      expect(bootTime()).toBeGreaterThanOrEqual(end)
      expect(stopped).toHaveLength(3)
      await until('it is killed', () => stopped.every(isGone) && isGone(pidOf(leased, 'guard')))
      expect(bootTime()).toBeGreaterThanOrEqual(end + LENGTH_MS)
      expect(membersOf(waits).map(stateOf)).not.toContain('T')
      server.child.kill('SIGKILL')
      await endAll(folder, isIsolated, [
        { taskId: 'leased', exit: { code: null, signal: 'SIGKILL' }, didLeaseEnd: true },
        { taskId: 'waits', exit: null, didLeaseEnd: false },
      ])
    },
  )

  it('keeps a task running while renewed, and suspended after a late renewal', async () => {
    const world = await guardWorld({ isIsolated })
    const attempt = attemptFolder(world.folder, 'renewed')
    // On a busy machine the start takes seconds, and the renewal must come before the lease ends.
    world.guards.lease(bootTime() + 3 * LENGTH_MS, 600_000)
    await world.sh('renewed', TREE, { isLeased: true })
    await until('it runs', () => membersOf(attempt).length === 3)
    const end = bootTime() + 3 * LENGTH_MS
    world.guards.lease(end, 600_000)
    await until('it is stopped', () => membersOf(attempt).every((pid) => stateOf(pid) === 'T'))
    expect(bootTime()).toBeGreaterThanOrEqual(end - 100)
    await expect(world.guards.resume('renewed', 1)).rejects.toThrow('guard: resume: the run lease is over')
    world.guards.lease(bootTime() + 600_000, 600_000)
    world.guards.setLeased('renewed', 1, true)
    await world.guards.suspend('renewed', 1)
    expect(membersOf(attempt).map(stateOf)).toEqual(['T', 'T', 'T'])
    await world.guards.resume('renewed', 1)
    await until('it goes on', () => membersOf(attempt).every((pid) => stateOf(pid) !== 'T'))
    world.guards.kill('renewed', 1)
    expect((await world.exitOf('renewed')).didLeaseEnd).toBe(false)
  })

  it('has no effect on a task that is not leased any more, and effect at once when it is again', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('switched', TREE, { isLeased: true })
    world.guards.setLeased('switched', 1, false)
    world.guards.lease(bootTime() - 1, 600_000)
    await world.guards.suspend('switched', 1)
    await world.guards.resume('switched', 1)
    world.guards.setLeased('switched', 1, true)
    const attempt = attemptFolder(world.folder, 'switched')
    await until('it is stopped', () => membersOf(attempt).every((pid) => stateOf(pid) === 'T'))
    world.guards.lease(0, 0)
    world.guards.setLeased('switched', 1, true)
    expect(await world.exitOf('switched')).toMatchObject({ exit: { signal: 'SIGKILL' }, didLeaseEnd: true })
  })

  it('that has ended prevents the start of leased tasks', async () => {
    const world = await guardWorld({ isIsolated })
    world.guards.lease(bootTime() - 1, 600_000)
    const marker = `${newGuardFolder()}/ran`
    expect(await world.guards.launch(shellSpec('late', `touch ${marker}`, { isLeased: true }))).toEqual({
      error: 'the run lease is over',
      refused: { cause: 'passing', code: 'lease_over' },
    })
    await world.sh('late', `test ! -e ${marker}`)
    expect((await world.exitOf('late')).exit?.code).toBe(0)
  })

  it('that has ended refuses many starts at once, without killing a guard', async () => {
    const world = await guardWorld({ isIsolated })
    world.guards.lease(bootTime() - 1, 600_000)
    const names = Array.from({ length: 20 }, (_, i) => `late-${i}`)
    const answers = await Promise.all(
      names.map((name) => world.guards.launch(shellSpec(name, 'true', { isLeased: true }))),
    )
    expect(new Set(answers.map(({ error }) => error))).toEqual(new Set(['the run lease is over']))
  })

  it('with a damaged file counts as ended', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('damaged', TREE, { isLeased: true })
    const file = readdirSync(world.folder).find((name) => name.startsWith('lease.'))
    writeFileSync(`${world.folder}/${file}`, Buffer.alloc(24, 7), { flag: 'r+' })
    world.guards.setLeased('damaged', 1, true)
    expect((await world.exitOf('damaged')).didLeaseEnd).toBe(true)
  })
})

describe('after the host was suspended', () => {
  it('a leased task is resumed only under a later lease, and any other task at once', async () => {
    const { program, skipMs } = await programWithFalseClock()
    const world = await guardWorld({ program })
    await world.sh('leased', TREE, { isLeased: true })
    await world.sh('waits', TREE)
    for (const taskId of ['leased', 'waits']) await world.guards.suspend(taskId, 1)
    await world.guards.resume('leased', 1)
    await world.guards.suspend('leased', 1)
    skipMs(60_000)
    await expect(world.guards.resume('leased', 1)).rejects.toThrow(
      'no run lease since the host was suspended',
    )
    await expect(world.guards.resume('leased', 1)).rejects.toThrow(
      'no run lease since the host was suspended',
    )
    await world.guards.resume('waits', 1)
    const noticed = bootTime()
    await until('it is later', () => bootTime() > noticed + 20)
    world.guards.lease(bootTime() + 60_000 + 600_000, 600_000)
    await world.guards.resume('leased', 1)
    for (const taskId of ['leased', 'waits']) {
      world.guards.kill(taskId, 1)
      await world.exitOf(taskId)
    }
  })
})

/**
 * The guard with a CLOCK_BOOTTIME that the test advances, as after a suspend of the host; its timers are
 * unaffected.
 */
async function programWithFalseClock(): Promise<{ program: string; skipMs: (ms: number) => void }> {
  const folder = newGuardFolder()
  const sources = join(import.meta.dirname, '../../gpu-server/guard')
  writeFileSync(`${folder}/skipped`, '0')
  writeFileSync(
    `${folder}/clock.c`,
    `#include <stdio.h>
#include <time.h>
int false_clock(clockid_t clock, struct timespec *at) {
  FILE *file = fopen("${folder}/skipped", "r");
  long seconds = 0;
  if (file != NULL && fscanf(file, "%ld", &seconds) == 1) fclose(file);
  int result = clock_gettime(clock, at);
  if (clock == CLOCK_BOOTTIME) at->tv_sec += seconds;
  return result;
}
`,
  )
  const files = readdirSync(sources).filter((name) => name.endsWith('.c') && name !== 'lease.c')
  const objects = [`${folder}/lease.o`, `${folder}/clock.c`, ...files.map((name) => `${sources}/${name}`)]
  const run = promisify(execFile)
  await run('cc', [
    `@${sources}/cc-flags`,
    '-Dclock_gettime=false_clock',
    '-c',
    `${sources}/lease.c`,
    '-o',
    `${folder}/lease.o`,
  ])
  await run('cc', [`@${sources}/cc-flags`, '-o', `${folder}/guard`, ...objects])
  return { program: `${folder}/guard`, skipMs: (ms) => writeFileSync(`${folder}/skipped`, String(ms / 1000)) }
}

interface Expected {
  readonly taskId: string
  readonly exit: object | null
  readonly didLeaseEnd: boolean
}

/** The next server finds them in this state, and ends those that still run. */
async function endAll(folder: string, isIsolated: boolean, expected: readonly Expected[]): Promise<void> {
  const next = await guardWorld({ folder, isIsolated })
  const found = (await next.guards.adopt()).toSorted((a, b) => (a.taskId < b.taskId ? -1 : 1))
  expect(found.map(({ taskId, exit, didLeaseEnd }) => ({ taskId, exit, didLeaseEnd }))).toEqual(expected)
  for (const task of found.filter(({ state }) => state !== 'ended')) {
    next.guards.kill(task.taskId, 1)
    await next.exitOf(task.taskId)
  }
}
