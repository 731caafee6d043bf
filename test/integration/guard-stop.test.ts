import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { attemptFolder, guardWorld, isGone, membersOf, pidOf, until } from '../support/guard-world.ts'

const LONG_MS = 60_000
const output = (folder: string, name: string): string => `${attemptFolder(folder, name)}/stdout.0`
/** The child is ready once it is a separate program: a forked shell ignores signals for a moment. */
const HANDLES = 'trap "echo handled; exit 5" TERM; sh -c "echo ready; exec sleep 300" & wait'
const IGNORES = 'trap "" TERM; echo ready; sleep 300'
const REPORTS = 'trap "echo received" TERM; echo ready; while :; do sleep 300 & wait; done'

/** Each test runs with namespaces and cgroups, if the host has them, and without. */
describe.each([
  ['isolated', true],
  ['plain', false],
])('a task that receives a stop (%s)', (_, isIsolated) => {
  const started = async (name: string, script: string) => {
    const world = await guardWorld({ isIsolated })
    await world.sh(name, script)
    await until(
      `${name} is ready`,
      () =>
        existsSync(output(world.folder, name)) &&
        readFileSync(output(world.folder, name), 'utf8').includes('ready'),
    )
    return world
  }

  it('handles SIGTERM and ends by itself, and its end is marked as ordered', async () => {
    const world = await started('handles', HANDLES)
    world.guards.stop('handles', 1, LONG_MS)
    expect(await world.exitOf('handles')).toMatchObject({
      exit: { code: 5, signal: null },
      wasOrdered: true,
      didLeaseEnd: false,
    })
    expect(await world.output('handles')).toContain('handled')
  })

  it('is killed at the end of the grace', async () => {
    const world = await started('ignores', IGNORES)
    const before = performance.now()
    world.guards.stop('ignores', 1, 700)
    expect(await world.exitOf('ignores')).toMatchObject({
      exit: { code: null, signal: 'SIGKILL' },
      wasOrdered: true,
    })
    expect(performance.now() - before).toBeGreaterThan(600)
    expect(membersOf(attemptFolder(world.folder, 'ignores'))).toEqual([])
  })

  it('is killed at once by a kill during the grace', async () => {
    const world = await started('now', IGNORES)
    world.guards.stop('now', 1, LONG_MS)
    world.guards.kill('now', 1)
    expect(await world.exitOf('now')).toMatchObject({ exit: { signal: 'SIGKILL' }, wasOrdered: true })
  })

  it('leaves its other processes the rest of the grace when its command ends earlier', async () => {
    const child = '(trap "sleep 0.4; echo saved; exit 0" TERM; sh -c "echo ready; exec sleep 300" & wait) & '
    const world = await started('saves', `trap "exit 0" TERM; ${child} wait`)
    world.guards.stop('saves', 1, LONG_MS)
    expect(await world.exitOf('saves')).toMatchObject({ exit: { code: 0 }, wasOrdered: true })
    expect(await world.output('saves')).toContain('saved')
  })

  it('that is suspended handles SIGTERM once it is resumed', async () => {
    const world = await started('resumed', HANDLES)
    await world.guards.suspend('resumed', 1)
    world.guards.stop('resumed', 1, LONG_MS)
    await world.guards.resume('resumed', 1)
    const end = await world.exitOf('resumed')
    expect(end).toMatchObject({ exit: { code: 5 }, wasOrdered: true })
    expect(end).not.toHaveProperty('neverRan')
  })

  it('that stays suspended ends without having run, and is reported so', async () => {
    const world = await started('held', HANDLES)
    await world.guards.suspend('held', 1)
    world.guards.stop('held', 1, 300)
    expect(await world.exitOf('held')).toMatchObject({
      exit: { signal: 'SIGKILL' },
      wasOrdered: true,
      neverRan: true,
    })
    expect(await world.output('held')).not.toContain('handled')
  })

  it('keeps its deadline in its guard without a server, and the next server knows of the stop', async () => {
    const world = await started('kept', REPORTS)
    const before = performance.now()
    world.guards.stop('kept', 1, 4_000)
    await until('the command has received SIGTERM', () =>
      readFileSync(output(world.folder, 'kept'), 'utf8').includes('received'),
    )
    world.guards.close()
    const next = await guardWorld({ isIsolated, folder: world.folder })
    expect(await next.guards.adopt()).toMatchObject([{ taskId: 'kept', state: 'running', isStopping: true }])
    next.guards.stop('kept', 1, LONG_MS)
    expect(await next.exitOf('kept')).toMatchObject({ exit: { signal: 'SIGKILL' }, wasOrdered: true })
    expect(performance.now() - before).toBeGreaterThan(3_900)
  })

  it('that had already ended by itself is not reported as ordered', async () => {
    const world = await guardWorld({ isIsolated })
    await world.sh('before', 'exit 0')
    const command = pidOf(attemptFolder(world.folder, 'before'), 'command')
    await until('the command has ended', () => isGone(command))
    world.guards.stop('before', 1, LONG_MS)
    world.guards.kill('before', 1)
    const end = await world.exitOf('before')
    expect(end).toMatchObject({ exit: { code: 0, signal: null } })
    expect(end).not.toHaveProperty('wasOrdered')
  })
})
