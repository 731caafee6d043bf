/** Limits of tasks on the host, set in cgroups: of version 1 below the server's own, else of version 2. */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { codeOf } from './guard-fault.ts'
import type { ResourceLimits } from '../../protocol/resource-limits.ts'
import type { Mib } from '../../protocol/units.ts'

const CONTROLLERS = ['memory', 'cpu', 'pids'] as const
type Controller = (typeof CONTROLLERS)[number]

/** Folders in which the cgroups of tasks are made: one of version 2, or one of each controller. */
export interface LimitRoots {
  readonly version: 1 | 2
  readonly folders: Readonly<Record<Controller, string>>
}

/** How this process is placed, as files of /proc say it. */
export interface CgroupFacts {
  readonly mounts: string
  readonly own: string
}

/** The controllers in the format of cgroup version 2. */
const ALL = CONTROLLERS.map((controller) => `+${controller}`).join(' ')
const PERIOD_US = 100_000
const BYTES_OF_MIB = 1024 * 1024
const FOLDER = 'headroom'

/**
 * Null where this process may not make cgroups with these controllers: as an ordinary user, and in most
 * containers.
 */
export function findLimitRoots(facts: CgroupFacts = readFacts()): LimitRoots | null {
  try {
    return rootsOfVersion1(facts) ?? rootOfVersion2(facts)
  } catch {
    return null
  }
}

function readFacts(): CgroupFacts {
  return {
    mounts: readFileSync('/proc/self/mounts', 'utf8'),
    own: readFileSync('/proc/self/cgroup', 'utf8'),
  }
}

function rootsOfVersion1({ mounts, own }: CgroupFacts): LimitRoots | null {
  const found = CONTROLLERS.map((controller) => {
    const mount = mountedAt(mounts, 'cgroup', controller)
    const path = new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(/.*)$`, 'm').exec(own)?.[1]
    if (mount === null || path === undefined || path.includes('..')) return null
    return made(`${mount}${path === '/' ? '' : path}`, ['cgroup.procs'])
  })
  const [memory = null, cpu = null, pids = null] = found
  return memory === null || cpu === null || pids === null
    ? null
    : { version: 1, folders: { memory, cpu, pids } }
}

/**
 * Below the topmost cgroup, as container engines make theirs: controllers in the cgroup of a service would
 * keep systemd from starting the service again.
 */
function rootOfVersion2({ mounts }: CgroupFacts): LimitRoots | null {
  const mount = mountedAt(mounts, 'cgroup2', null)
  if (mount === null || !hasAll(`${mount}/cgroup.controllers`)) return null
  writeFileSync(`${mount}/cgroup.subtree_control`, ALL)
  const root = made(mount, ['cgroup.procs', 'cgroup.subtree_control'])
  return { version: 2, folders: { memory: root, cpu: root, pids: root } }
}

function hasAll(path: string): boolean {
  const offered = readFileSync(path, 'utf8').split(/\s+/)
  return CONTROLLERS.every((controller) => offered.includes(controller))
}

function mountedAt(mounts: string, type: string, option: string | null): string | null {
  const found = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .find(([, , kind, options]) => kind === type && (option === null || options?.split(',').includes(option)))
  return found?.[1] ?? null
}

/** Throws where it cannot be written. */
function made(parent: string, files: readonly string[]): string {
  const root = `${parent}/${FOLDER}`
  makeFolder(root)
  for (const file of files) accessSync(`${root}/${file}`, constants.W_OK)
  return root
}

/** Not with its parents: where they cannot be made, as in /proc, Node tries without end. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

/** The cgroups of one task, each once. */
export function limitFoldersOf({ folders }: LimitRoots, name: string): readonly string[] {
  return [...new Set(CONTROLLERS.map((controller) => `${folders[controller]}/${name}`))]
}

/** Makes them with their limits. Throws the file system's error. */
export function makeLimits(roots: LimitRoots, name: string, limits: ResourceLimits): void {
  const { memory, cpu, pids } = roots.folders
  const isV2 = roots.version === 2
  for (const root of new Set([memory, cpu, pids])) makeFolder(root)
  if (isV2) writeFileSync(`${memory}/cgroup.subtree_control`, ALL)
  for (const folder of limitFoldersOf(roots, name)) makeFolder(folder)
  if (limits.memoryMib !== null) setMemory(`${memory}/${name}`, limits.memoryMib)
  if (limits.pids !== null) writeFileSync(`${pids}/${name}/pids.max`, String(limits.pids))
  if (limits.cpus === null) return
  const quota = limits.cpus * PERIOD_US
  if (isV2) return writeFileSync(`${cpu}/${name}/cpu.max`, `${quota} ${PERIOD_US}`)
  writeFileSync(`${cpu}/${name}/cpu.cfs_period_us`, String(PERIOD_US))
  writeFileSync(`${cpu}/${name}/cpu.cfs_quota_us`, String(quota))
}

/**
 * No swap space of the host beyond it. Version 1 counts both together, and never lets the sum be less than
 * memory alone.
 */
export function setMemory(folder: string, mib: Mib): void {
  const bytes = String(mib * BYTES_OF_MIB)
  const [limit, both] = ['memory.limit_in_bytes', 'memory.memsw.limit_in_bytes'].map(
    (it) => `${folder}/${it}`,
  )
  if (existsSync(`${folder}/memory.max`)) {
    writeFileSync(`${folder}/memory.max`, bytes)
    if (existsSync(`${folder}/memory.swap.max`)) writeFileSync(`${folder}/memory.swap.max`, '0')
    return
  }
  const hasBoth = existsSync(both ?? '')
  const isRaised = Number(readFileSync(limit ?? '', 'utf8')) < mib * BYTES_OF_MIB
  if (hasBoth && isRaised) writeFileSync(both ?? '', bytes)
  writeFileSync(limit ?? '', bytes)
  if (hasBoth && !isRaised) writeFileSync(both ?? '', bytes)
}
