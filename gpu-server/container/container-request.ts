/**
 * What an engine is asked to run. Everything that confines a task is here: its user, no privileges, its own
 * network, the GPUs of its placement and no others.
 */
import {
  CONTAINER_PROGRAM,
  CONTAINER_SOCKET,
  CONTAINER_WORK,
  type ContainerStart,
} from '../guard/containers.ts'
import { containerMountPoint } from '../files/data-mounts.ts'
import type { EngineKind } from './engine-api.ts'

export const MAX_PROCESSES = 4_096
/** Size of /dev/shm, through which data loaders pass batches. Only used memory counts, not this limit. */
const SHARED_MEMORY_BYTES = 1024 * 1024 * 1024
const BYTES_OF_MIB = 1024 * 1024
const PERIOD_US = 100_000
const LABEL = 'io.headroom'

export interface RequestOptions {
  readonly kind: EngineKind
  /** The engine runs as the server's user. */
  readonly isRootless: boolean
  /** Identifies the server among all that use the engine. */
  readonly owner: string
  /** Network in which no other task can be reached; null: the engine's own, as with podman without root. */
  readonly network: string | null
}

/** The label by which a server finds its containers and networks. */
export function ownerLabel(owner: string): readonly [name: string, value: string] {
  return [`${LABEL}.server`, owner]
}

export function containerRequest(start: ContainerStart, options: RequestOptions): unknown {
  return options.kind === 'podman' ? podmanRequest(start, options) : dockerRequest(start, options)
}

function dockerRequest(start: ContainerStart, { owner, network }: RequestOptions): unknown {
  const { user, devices, groups } = start
  return {
    Image: start.imageId,
    Entrypoint: [CONTAINER_PROGRAM],
    Cmd: [],
    User: `${user.uid}:${user.gid}`,
    // The guard enters the image's own folder as the user of the task.
    WorkingDir: '/',
    Env: Object.entries(environmentOf(start)).map(([name, value]) => `${name}=${value}`),
    Labels: labelsOf(start, owner),
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      Mounts: mountsOf(start).map(({ source, target, isReadOnly }) => ({
        Type: 'bind',
        Source: source,
        Target: target,
        ReadOnly: isReadOnly,
        BindOptions: { Propagation: 'rprivate' },
      })),
      DeviceRequests:
        devices.length === 0 ? [] : [{ DeviceIDs: devices, Capabilities: [['gpu', 'compute', 'utility']] }],
      Privileged: false,
      CapAdd: [],
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      GroupAdd: groups.map(String),
      NetworkMode: network,
      IpcMode: 'private',
      PidsLimit: start.limits?.pids ?? MAX_PROCESSES,
      ...dockerLimits(start),
      ShmSize: SHARED_MEMORY_BYTES,
      RestartPolicy: { Name: 'no' },
      AutoRemove: false,
      LogConfig: { Type: 'none' },
    },
  }
}

function podmanRequest(start: ContainerStart, { isRootless, owner, network }: RequestOptions): unknown {
  const { user, devices, groups } = start
  return {
    name: start.name,
    image: start.imageId,
    entrypoint: [CONTAINER_PROGRAM],
    command: [],
    user: `${user.uid}:${user.gid}`,
    work_dir: '/',
    env: environmentOf(start),
    labels: labelsOf(start, owner),
    healthconfig: { Test: ['NONE'] },
    mounts: mountsOf(start).map(({ source, target, isReadOnly }) => ({
      type: 'bind',
      source,
      destination: target,
      options: ['bind', 'rprivate', isReadOnly ? 'ro' : 'rw'],
    })),
    devices: devices.map((id) => ({ path: `nvidia.com/gpu=${id}` })),
    privileged: false,
    cap_drop: ['ALL'],
    no_new_privileges: true,
    groups: groups.map(String),
    ...networkOf(network),
    ipcns: { nsmode: 'private' },
    pidns: { nsmode: 'private' },
    ...(isRootless ? { userns: { nsmode: 'keep-id' } } : {}),
    resource_limits: { pids: { limit: start.limits?.pids ?? MAX_PROCESSES }, ...podmanLimits(start) },
    shm_size: SHARED_MEMORY_BYTES,
    restart_policy: 'no',
    remove: false,
    log_configuration: { driver: 'none' },
  }
}

function networkOf(network: string | null) {
  if (network === null) return { netns: { nsmode: 'slirp4netns' } }
  return { netns: { nsmode: 'bridge' }, Networks: { [network]: {} } }
}

/** No swap space of the host beyond the memory. Quotas may be larger than what the host has. */
function dockerLimits({ limits }: ContainerStart) {
  const { memoryMib = null, cpus = null } = limits ?? {}
  const bytes = (memoryMib ?? 0) * BYTES_OF_MIB
  return {
    ...(memoryMib === null ? {} : { Memory: bytes, MemorySwap: bytes }),
    ...(cpus === null ? {} : { CpuPeriod: PERIOD_US, CpuQuota: cpus * PERIOD_US }),
  }
}

function podmanLimits({ limits }: ContainerStart) {
  const { memoryMib = null, cpus = null } = limits ?? {}
  const bytes = (memoryMib ?? 0) * BYTES_OF_MIB
  return {
    ...(memoryMib === null ? {} : { memory: { limit: bytes, swap: bytes } }),
    ...(cpus === null ? {} : { cpu: { period: PERIOD_US, quota: cpus * PERIOD_US } }),
  }
}

/**
 * Set at the container, so that an image cannot ask NVIDIA's runtime for other GPUs; the task's own variables
 * come from its guard and are not in the engine's configuration.
 */
function environmentOf({ devices }: ContainerStart): Readonly<Record<string, string>> {
  return { NVIDIA_VISIBLE_DEVICES: devices.length === 0 ? 'void' : devices.join(',') }
}

function labelsOf(start: ContainerStart, owner: string): Readonly<Record<string, string>> {
  return {
    ...Object.fromEntries([ownerLabel(owner)]),
    [`${LABEL}.task`]: start.taskId,
    [`${LABEL}.attempt`]: String(start.attempt),
    [`${LABEL}.epoch`]: String(start.epoch),
  }
}

interface Mount {
  readonly source: string
  readonly target: string
  readonly isReadOnly: boolean
}

function mountsOf({ program, socket, workFolder, mounts }: ContainerStart): readonly Mount[] {
  return [
    { source: program, target: CONTAINER_PROGRAM, isReadOnly: true },
    { source: socket, target: CONTAINER_SOCKET, isReadOnly: true },
    { source: workFolder, target: CONTAINER_WORK, isReadOnly: false },
    ...mounts.map((mount) => ({ ...mount, target: containerMountPoint(mount) })),
  ]
}
