import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { stateOf } from '../../gpu-server/guard/process-table.ts'
import {
  attemptFolder,
  guardWorld,
  isGone,
  isRoot,
  membersOf,
  NOBODY,
  startGuardServer,
  newGuardFolder,
  shellSpec,
  until,
} from '../support/guard-world.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'

/**
 * A command, its child, an orphaned grandchild in a separate session, and a process that forks all the time.
 */
const FAMILY = `
sleep 60 &
(setsid sh -c 'sleep 60 & while :; do sleep 0.02; done' &)
sh -c 'while :; do /bin/true; done' &
wait`

/** CPU time used by a process so far, in clock ticks. */
function ticksOf(pid: number): string {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return `${fields[11]} ${fields[12]} ${fields[13]} ${fields[14]}`
}

describe.each([
  ['isolated', true],
  ['plain', false],
])('suspending a task (%s)', (_, isIsolated) => {
  it('stops every process of the task, also in other sessions, and resumes all of them', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('family', FAMILY)
    const attempt = attemptFolder(world.folder, 'family')
    await until('all of it runs', () => membersOf(attempt).length >= 6)
    await world.guards.suspend('family', 1)
    const members = membersOf(attempt)
    expect(members.length).toBeGreaterThanOrEqual(5)
    expect(members.map(stateOf)).toEqual(members.map(() => 'T'))
    const used = members.map(ticksOf)
    expect(world.guards.processIds('family', 1).toSorted((a, b) => a - b)).toEqual(
      members.toSorted((a, b) => a - b),
    )
    await world.guards.suspend('family', 1)
    expect([membersOf(attempt), members.map(ticksOf)]).toEqual([members, used])
    await world.guards.resume('family', 1)
    await until('all of it continues', () => members.every((pid) => stateOf(pid) !== 'T'))
    world.guards.kill('family', 1)
    expect((await world.exitOf('family')).exit).toEqual({ code: null, signal: 'SIGKILL' })
    expect(membersOf(attempt)).toEqual([])
  })

  it('does not prevent killing', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('stopped', FAMILY)
    await world.guards.suspend('stopped', 1)
    world.guards.kill('stopped', 1)
    expect(await world.exitOf('stopped')).toMatchObject({
      exit: { code: null, signal: 'SIGKILL' },
      didLeaseEnd: false,
    })
    expect(membersOf(attemptFolder(world.folder, 'stopped'))).toEqual([])
  })

  it('of an unknown or ended attempt is rejected', async () => {
    const world = await guardWorld({ isIsolated })
    await expect(world.guards.suspend('absent', 1)).rejects.toThrow('no guard has attempt absent.1')
    await world.sh('over', 'exit 0')
    await world.exitOf('over')
    await expect(world.guards.resume('over', 1)).rejects.toThrow('the task has ended')
    world.guards.kill('over', 1)
    expect(world.guards.processIds('over', 1)).toEqual([])
  })

  it('does not prevent killing during a launch', async () => {
    const world = await guardWorld({ isIsolated })
    const launched = world.sh('early', 'exec sleep 60')
    world.guards.kill('early', 1)
    await launched
    expect((await world.exitOf('early')).exit?.signal).toBe('SIGKILL')
    expect(world.exits).toHaveLength(1)
  })
})

describe.runIf(isRoot)('a server without root', () => {
  it('launches, suspends, resumes, reads and kills as its own user', async () => {
    const folder = newGuardFolder()
    const { chownSync } = await import('node:fs')
    chownSync(folder, NOBODY, NOBODY)
    const server = await startGuardServer(folder, true, NOBODY)
    await server.ask({ call: 'lease', untilMono: bootTime() + 600_000, lengthMs: 600_000 })
    expect(
      await server.ask({ call: 'launch', spec: shellSpec('other', 'exit 0', { user: { uid: 0, gid: 0 } }) }),
    ).toEqual({
      error: 'cannot run as group 0: Operation not permitted',
      refused: { cause: 'host', code: 'task_user' },
    })
    expect(await server.ask({ call: 'launch', spec: shellSpec('mine', `id -u; ${FAMILY}`) })).toEqual({
      error: null,
    })
    const attempt = attemptFolder(folder, 'mine')
    await until('all of it runs', () => membersOf(attempt).length >= 6)
    await server.ask({ call: 'suspend', taskId: 'mine' })
    const members = membersOf(attempt)
    expect(members.map(stateOf)).toEqual(members.map(() => 'T'))
    expect(await server.ask({ call: 'read', taskId: 'mine' })).toBe(`${NOBODY}\n`)
    await server.ask({ call: 'resume', taskId: 'mine' })
    await server.ask({ call: 'kill', taskId: 'mine' })
    await until('its end is reported', () => server.exits.length === 1)
    expect(server.exits[0]?.exit).toEqual({ code: null, signal: 'SIGKILL' })
    expect(members.every(isGone)).toBe(true)
  })
})
