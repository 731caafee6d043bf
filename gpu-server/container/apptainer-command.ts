/**
 * What apptainer is told to run. Everything that confines a task is here, as container-request.ts has it for
 * the engines. The options are those of apptainer 1.1 and later (its manual pages).
 */
import {
  CONTAINER_PROGRAM,
  CONTAINER_SOCKET,
  CONTAINER_WORK,
  type ContainerStart,
} from '../guard/containers.ts'
import { containerMountPoint } from '../files/data-mounts.ts'
import { MAX_PROCESSES } from './container-request.ts'

/** A command that answered when the server started. */
export interface Apptainer {
  readonly kind: 'apptainer'
  readonly version: string
  readonly program: string
  /** It runs as root: it changes the user of the task, and can limit memory, processors and processes. */
  readonly isRoot: boolean
  /** Its default seccomp profile; null: it has none. */
  readonly seccompProfile: string | null
}

const BYTES_OF_MIB = 1024 * 1024

/**
 * Nothing of the host but the mounts below: no home, no folder of apptainer.conf, no variable, no process, no
 * network but a loopback of its own, no GPU even where apptainer.conf says `always use nv`. The guard is
 * PID 1.
 */
const CONFINED = [
  ['--containall', '--cleanenv', '--no-home', '--no-mount', 'home,cwd,hostfs,bind-paths'],
  ['--pid', '--ipc', '--uts', '--net', '--network', 'none'],
  ['--no-init', '--no-eval', '--no-umask', '--writable-tmpfs'],
  ['--no-privs', '--no-rocm'],
].flat()

export function execArguments(apptainer: Apptainer, start: ContainerStart): readonly string[] {
  return [
    ...['--silent', 'exec', ...CONFINED],
    ...(start.devices.length === 0 ? ['--no-nv'] : ['--nvccli']),
    ...securityOf(apptainer, start),
    ...(apptainer.isRoot ? limitsOf(start) : []),
    ...mountsOf(start).flatMap((mount) => ['--mount', mount]),
    start.imageId,
    CONTAINER_PROGRAM,
  ]
}

/**
 * `--nvccli` makes the devices of this variable, and no others, with `--containall`. The image gets the value
 * too, whatever its own is.
 */
export function execEnvironment({ devices }: ContainerStart): Readonly<Record<string, string>> {
  const visible = devices.length === 0 ? 'void' : devices.join(',')
  return {
    NVIDIA_VISIBLE_DEVICES: visible,
    NVIDIA_DRIVER_CAPABILITIES: 'compute,utility',
    APPTAINERENV_NVIDIA_VISIBLE_DEVICES: visible,
  }
}

/** Only root may change the user; any other server runs tasks as itself. */
function securityOf(
  { isRoot, seccompProfile }: Apptainer,
  { user, groups }: ContainerStart,
): readonly string[] {
  return [
    ...(isRoot ? [`uid:${user.uid}`, `gid:${[user.gid, ...groups].join(':')}`] : []),
    ...(seccompProfile === null ? [] : [`seccomp:${seccompProfile}`]),
  ].flatMap((option) => ['--security', option])
}

/** No swap space of the host beyond the memory. */
function limitsOf({ limits }: ContainerStart): readonly string[] {
  const { memoryMib = null, cpus = null, pids = null } = limits ?? {}
  const bytes = String((memoryMib ?? 0) * BYTES_OF_MIB)
  return [
    ...['--pids-limit', String(pids ?? MAX_PROCESSES)],
    ...(memoryMib === null ? [] : ['--memory', bytes, '--memory-swap', bytes]),
    ...(cpus === null ? [] : ['--cpus', String(cpus)]),
  ]
}

function mountsOf({ program, socket, workFolder, mounts }: ContainerStart): readonly string[] {
  return [
    mountOf(program, CONTAINER_PROGRAM, true),
    mountOf(socket, CONTAINER_SOCKET, true),
    mountOf(workFolder, CONTAINER_WORK, false),
    ...mounts.map((mount) => mountOf(mount.source, containerMountPoint(mount), mount.isReadOnly)),
  ]
}

/** Quoted for the CSV of `--mount`: a path may have commas and quotes. */
function mountOf(source: string, target: string, isReadOnly: boolean): string {
  const fields = ['type=bind', `source=${source}`, `destination=${target}`, ...(isReadOnly ? ['ro'] : [])]
  return fields.map((field) => (/[",]/.test(field) ? `"${field.replaceAll('"', '""')}"` : field)).join(',')
}
