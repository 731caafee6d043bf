/** Limits of tasks on the host: real cgroups where this process may make them. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  findLimitRoots,
  limitFoldersOf,
  makeLimits,
  setMemory,
} from '../../gpu-server/guard/limit-cgroups.ts'
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import { attemptFolder, guardWorld, newGuardFolder, shellSpec } from '../support/guard-world.ts'

const NONE: ResourceLimits = { memoryMib: null, cpus: null, pids: null }
const roots = findLimitRoots()
const limitRoots = roots === null ? {} : { limitRoots: roots }

function foldersOf(folder: string, taskId: string): readonly string[] {
  const text = readFileSync(`${attemptFolder(folder, taskId)}/task.json`, 'utf8')
  return (JSON.parse(text) as { readonly limitCgroups?: readonly string[] }).limitCgroups ?? []
}

describe.skipIf(roots === null)('a task on the host with limits', () => {
  it('ends when it needs more memory, and says so', async () => {
    const world = await guardWorld(limitRoots)
    // The shell keeps the text in its memory.
    await world.sh('greedy', 'x=$(head -c 300M /dev/zero | tr "\\0" a); exit 3', {
      limits: { ...NONE, memoryMib: 64 },
    })
    expect(await world.exitOf('greedy')).toMatchObject({
      exit: { code: null, signal: 'SIGKILL' },
      didReachMemoryLimit: true,
    })
  })

  it('that fails within its memory does not say so', async () => {
    const world = await guardWorld(limitRoots)
    await world.sh('modest', 'exit 3', { limits: { ...NONE, memoryMib: 64 } })
    const task = await world.exitOf('modest')
    expect(task.exit).toEqual({ code: 3, signal: null })
    expect(task).not.toHaveProperty('didReachMemoryLimit')
  })

  it('is in its cgroups before its command runs, and they are removed with it', async () => {
    const world = await guardWorld(limitRoots)
    const limits = { memoryMib: 64, cpus: 2, pids: 20 }
    await world.sh('limited', 'exec sleep 1000', { limits })
    const folders = foldersOf(world.folder, 'limited')
    const values = (names: readonly string[]): readonly string[] =>
      folders.flatMap((folder) =>
        names.filter((name) => existsSync(`${folder}/${name}`)).map((name) => read(`${folder}/${name}`)),
      )
    expect(values(['memory.limit_in_bytes', 'memory.max'])).toEqual([String(64 << 20)])
    expect(values(['cpu.cfs_quota_us', 'cpu.max'])).toEqual([expect.stringMatching(/^200000/)])
    expect(values(['pids.max'])).toEqual(['20'])
    for (const folder of folders) expect(read(`${folder}/cgroup.procs`)).toMatch(/^\d+/)

    world.guards.setMemoryLimit('limited', 1, 128)
    expect(values(['memory.limit_in_bytes', 'memory.max'])).toEqual([String(128 << 20)])
    world.guards.kill('limited', 1)
    await world.exitOf('limited')
    for (const folder of folders) expect(existsSync(folder)).toBe(false)
  })

  it('cannot have more processes than its limit', async () => {
    const world = await guardWorld(limitRoots)
    await world.sh('crowd', 'for i in $(seq 40); do sleep 1000 & done; echo all', {
      limits: { ...NONE, pids: 20 },
    })
    await world.exitOf('crowd')
    expect(await world.output('crowd')).not.toContain('all')
    expect(await world.output('crowd', 'stderr')).toMatch(/fork/i)
  })

  it('does not start where its cgroup is gone', async () => {
    const gone = {
      version: 1,
      folders: { memory: '/proc/none', cpu: '/proc/none', pids: '/proc/none' },
    } as const
    const world = await guardWorld({ limitRoots: gone })
    const answer = await world.guards.launch(
      shellSpec('unlimited', `touch ${world.folder}/ran`, { limits: { ...NONE, cpus: 1 } }),
    )
    expect(answer).toMatchObject({ refused: { cause: 'host', code: 'limits_not_set' } })
    expect(existsSync(`${world.folder}/ran`)).toBe(false)
    expect(existsSync(attemptFolder(world.folder, 'unlimited'))).toBe(false)
  })
})

it('A task with limits does not start on a server that sets none', async () => {
  const world = await guardWorld()
  const spec = shellSpec('unlimited', `touch ${world.folder}/ran`, { limits: { ...NONE, pids: 20 } })
  expect(await world.guards.launch(spec)).toEqual({
    error: 'this server cannot limit tasks',
    refused: { cause: 'host', code: 'limits_not_set' },
  })
  expect(existsSync(`${world.folder}/ran`)).toBe(false)
})

describe('cgroups of version 2', () => {
  function mounted(controllers: string): string {
    const mount = newGuardFolder()
    writeFileSync(`${mount}/cgroup.controllers`, controllers)
    mkdirSync(`${mount}/headroom`)
    for (const name of ['cgroup.procs', 'cgroup.subtree_control']) write(`${mount}/headroom/${name}`, '')
    return mount
  }
  const found = (mount: string) =>
    findLimitRoots({ mounts: `cgroup2 ${mount} cgroup2 rw 0 0\n`, own: '0::/system.slice/a.service\n' })

  it('hold the limits as their files take them', () => {
    const mount = mounted('cpuset cpu io memory pids')
    const at = found(mount)
    if (at === null) throw new Error('not found')
    expect(read(`${mount}/cgroup.subtree_control`)).toBe('+memory +cpu +pids')
    const [folder = '', ...others] = limitFoldersOf(at, 'task')
    expect([folder, others]).toEqual([join(mount, 'headroom/task'), []])
    write(`${folder}/memory.max`, 'max')
    write(`${folder}/memory.swap.max`, 'max')
    makeLimits(at, 'task', { memoryMib: 64, cpus: 3, pids: 100 })
    expect(
      ['memory.max', 'memory.swap.max', 'cpu.max', 'pids.max'].map((name) => read(`${folder}/${name}`)),
    ).toEqual([String(64 << 20), '0', '300000 100000', '100'])
    setMemory(folder, 65)
    expect(read(`${folder}/memory.max`)).toBe(String(65 << 20))
  })

  it('without one of the controllers set no limits', () => {
    expect(found(mounted('cpu pids'))).toBe(null)
  })
})

function read(path: string): string {
  return readFileSync(path, 'utf8').trim()
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}
