/** Means of this host for tasks that need more than a command: containers and limits. */
import type { Logger } from 'pino'
import { ApptainerContainers } from '../../gpu-server/container/apptainer-containers.ts'
import { EngineContainers, type PullPolicy } from '../../gpu-server/container/engine-containers.ts'
import { findEngine, type ContainerRuntime } from '../../gpu-server/container/find-engine.ts'
import { CredentialsFault, readLogins } from '../../gpu-server/container/registry-credentials.ts'
import type { Containers } from '../../gpu-server/guard/containers.ts'
import { isStatic } from '../../gpu-server/guard/is-static.ts'
import { findLimitRoots, type LimitRoots } from '../../gpu-server/guard/limit-cgroups.ts'
import { mountFeature, type Feature, type MountFeature } from '../../protocol/units.ts'
import { UsageError } from '../exit-codes.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { mountsOf } from './mounts.ts'

export interface MeansOptions {
  readonly allowExec?: boolean
  readonly allowAttach?: boolean
  readonly containerRuntime?: ContainerRuntime
  readonly containerPull?: PullPolicy
  /** Data folders, as `--mount` gives them. */
  readonly mount?: readonly string[]
}

type Environment = Readonly<Record<string, string | undefined>>

/** Null: this server runs no containers, and the controller knows. */
export async function containersOf(
  { allowExec, containerRuntime = 'auto', containerPull = 'missing' }: MeansOptions,
  { stateFolder, program }: { readonly stateFolder: string; readonly program: string },
  env: Environment,
  log: Logger,
): Promise<Containers | null> {
  if (allowExec !== true || containerRuntime === 'none') return null
  const found = await findEngine(containerRuntime, env)
  if (found.engine === null) {
    const note = { runtime: containerRuntime, why: found.why }
    if (containerRuntime === 'auto') log.info(note, 'tasks run on the host only: no container engine answers')
    else log.warn(note, 'tasks run on the host only: the container engine does not answer')
    return null
  }
  if (!(await isStatic(program))) {
    log.warn({ program }, 'tasks run on the host only: the guard is not static, so containers cannot run it')
    return null
  }
  const credentials = credentialsOf(env)
  const { engine } = found
  const { kind, version } = engine
  const place = engine.kind === 'apptainer' ? engine.program : engine.socketPath
  log.info({ engine: kind, version, place }, 'container engine')
  const options = { stateFolder, pull: containerPull, credentials, onNote: (line: string) => log.warn(line) }
  if (engine.kind !== 'apptainer') return new EngineContainers({ engine, ...options })
  if (engine.seccompProfile === null)
    log.warn('apptainer has no default seccomp profile: tasks run without one')
  return ApptainerContainers.open({ apptainer: engine, ...options })
}

/** A file that cannot be used ends the start: private images would be missing later. */
function credentialsOf(env: Environment): string | null {
  const { name } = ENVIRONMENT.registryCredentials
  const path = env[name] ?? ''
  if (path === '') return null
  try {
    readLogins(path)
    return path
  } catch (error) {
    if (!(error instanceof CredentialsFault)) throw error
    throw new UsageError(`${name}: ${error.message}`)
  }
}

/** Null: this server limits no task. It does so on the host and in containers, or not at all. */
export function limitRootsOf(
  { allowExec }: MeansOptions,
  containers: Containers | null,
  log: Logger,
): LimitRoots | null {
  if (allowExec !== true) return null
  if (containers?.canLimit === false) {
    log.info('tasks with limits run on other nodes: the container engine cannot limit containers')
    return null
  }
  const roots = findLimitRoots()
  if (roots === null)
    log.info('tasks with limits run on other nodes: this server may not create cgroups for them')
  return roots
}

interface Means {
  readonly containers: Containers | null
  readonly filesProgram: string | null
  readonly limitRoots: LimitRoots | null
}

/** Returns the features of the hello and the folders that it mounts. */
export function offersOf(
  { allowExec = false, allowAttach = false, mount = [] }: MeansOptions,
  { containers, filesProgram, limitRoots }: Means,
) {
  const mounts = mountsOf(mount)
  const features: (Feature | MountFeature)[] = [
    'env',
    'attach',
    'vram_limit',
    ...mounts.map(({ name }) => mountFeature(name)),
  ]
  if (containers !== null) features.push('image')
  if (filesProgram !== null) features.push('files')
  if (limitRoots !== null) features.push('limits')
  if (containers !== null || filesProgram !== null) features.push('prepare')
  if (allowAttach) features.push('channels')
  if (allowExec) features.push('swap_hooks', 'swap_engine')
  return { allowExec, allowAttach, features, mounts }
}
