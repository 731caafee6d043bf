/** Fields that several messages between the controller and GPU servers share. */
import {
  ABSOLUTE_PATH,
  count,
  flag,
  IMAGE_DIGEST,
  IMAGE_REFERENCE,
  integer,
  list,
  MOUNT_NAME,
  NO_NUL,
  oneOf,
  optional,
  orNull,
  PORT_NAME,
  record,
  REQUEST_PATH,
  SHA_256,
  text,
  withoutDuplicates,
} from './fields.ts'
import type { Characters, Value } from './fields.ts'
import {
  MAX_ARGUMENT_LENGTH,
  MAX_ARGUMENTS,
  MAX_ATTEMPT,
  MAX_ENVIRONMENT_LENGTH,
  MAX_GPUS,
  MAX_HOOK_PATH_LENGTH,
  MAX_ID_LENGTH,
  MAX_IMAGE_LENGTH,
  MAX_MOUNT_NAME_LENGTH,
  MAX_MOUNTS,
  MAX_ADDRESS_LENGTH,
  MAX_DETAIL_LENGTH,
  MAX_PORT_NAME_LENGTH,
  MAX_PORTS,
  MAX_PATH_LENGTH,
  MAX_RECORDED_NAME_LENGTH,
  MAX_REFUSAL_CODE_LENGTH,
  MAX_RESERVE_MIB,
  MAX_STOP_GRACE_SECONDS,
  MAX_VARIABLE_NAME_LENGTH,
  MAX_VARIABLES,
  MAX_VRAM_MIB,
} from './limits.ts'
import {
  ENGINE_KINDS,
  GPU_MODES,
  NOSWAP,
  ON_NODE_LOSS,
  PORT_PROTOCOLS,
  PRIORITIES,
  RESIDENCIES,
} from './units.ts'

export const id = (description?: string) => text(1, MAX_ID_LENGTH, description)
export const vramMib = (description?: string) => integer(0, MAX_VRAM_MIB, description)
export const reserveMib = (description: string) => integer(0, MAX_RESERVE_MIB, description)
export const stopGraceMs = (description: string) => integer(0, MAX_STOP_GRACE_SECONDS * 1000, description)
export const recordedName = (description?: string) => text(0, MAX_RECORDED_NAME_LENGTH, description)
export const gpuIndex = () => integer(0, MAX_GPUS - 1, 'Index of a GPU on its node')
export const gpuIndexes = withoutDuplicates(list(gpuIndex(), 1, MAX_GPUS, 'Indexes of its GPUs on the node'))
export const noswap = oneOf(NOSWAP, '0: may be swapped out. 1: stays in physical VRAM')
export const residency = oneOf(RESIDENCIES, 'Where the VRAM of the attempt is')
export const generation = count('Residency generation: grows with every order that changes the residency')

export const boot = {
  counter: count('Persisted; grows at every start (R6)'),
  random: text(1, 64, 'New at every start'),
}
/** One start of the sender: the counter is persisted and grows at every start (R6). */
export const Boot = record(boot, 'One start of the sender')
export type Boot = Value<typeof Boot>
export const attempt = { task_id: id(), attempt: integer(1, MAX_ATTEMPT, 'Number of the assignment, from 1') }
export const passedOn = {
  gpu_mode: oneOf(GPU_MODES, 'exclusive: no other task uses these GPUs'),
  noswap,
  priority: oneOf(PRIORITIES, '0 is highest (P0)'),
  on_node_loss: oneOf(ON_NODE_LOSS, 'What the server does when its run lease ends (R4)'),
}
export const commandLine = orNull(
  list(text(0, MAX_ARGUMENT_LENGTH, undefined, NO_NUL), 1, MAX_ARGUMENTS),
  'Command line. Null: a lease',
)

export const environment = list(
  record({
    name: text(1, MAX_VARIABLE_NAME_LENGTH),
    value: text(0, MAX_ENVIRONMENT_LENGTH, undefined, NO_NUL),
  }),
  0,
  MAX_VARIABLES,
)

export const imageDigest = (description: string) => text(71, 71, description, IMAGE_DIGEST)
export const image = (description: string) => text(1, MAX_IMAGE_LENGTH, description, IMAGE_REFERENCE)

export const ports = (description?: string) =>
  list(
    record({
      name: text(1, MAX_PORT_NAME_LENGTH, 'Each name once', PORT_NAME),
      target: integer(1, 65_535, 'TCP port on which the task listens'),
      protocol: oneOf(PORT_PROTOCOLS),
    }),
    0,
    MAX_PORTS,
    description,
  )
export const wakeable = flag(
  'It is swapped out, and the server reports gpu_wanted when a request for it arrives: no probe and no ' +
    'eager return is needed. Absent: false',
)

export const portAddresses = list(
  record({
    target: integer(1, 65_535, 'TCP port on which the task listens'),
    address: orNull(text(1, MAX_ADDRESS_LENGTH), 'IP address and port at which clients reach it; or null'),
    detail: orNull(text(0, MAX_DETAIL_LENGTH), 'Why there is no address; null: there is one'),
  }),
  0,
  MAX_PORTS,
  'Where clients reach its declared ports now, if the server forwards to them. Absent: at these ports',
)
/** One order to a task: a command that runs in it, or a request to a port on which it listens. */
const hook = (description: string, argument: Characters) =>
  record(
    {
      command: optional(list(text(0, MAX_ARGUMENT_LENGTH, undefined, argument), 1, MAX_ARGUMENTS)),
      port: optional(integer(1, 65_535, 'TCP port on which the task listens; with path')),
      path: optional(text(1, MAX_HOOK_PATH_LENGTH, 'Sent as POST', REQUEST_PATH)),
    },
    description,
  )
const hooks = (argument: Characters) => ({
  suspend: hook(
    'Moves its data out of VRAM: a command, or a port and a path. Done when it exits with 0 or answers 2xx',
    argument,
  ),
  resume: hook('Moves it back', argument),
})
export const swapHooks = (description: string) => record(hooks(NO_NUL), description)
/** Swap hooks in a request, where they may be null. */
export const swapHooksOrNull = (description: string, argument = NO_NUL) =>
  orNull(record(hooks(argument)), description)
const ENGINE = {
  kind: oneOf(ENGINE_KINDS),
  port: integer(1, 65_535, 'TCP port on which it listens'),
  level: optional(oneOf([1, 2], 'Of vllm: 1 keeps the weights in host memory, 2 drops them. Absent: 1')),
}
export const swapEngine = (description: string) => record(ENGINE, description)
export const swapEngineOrNull = (description: string) => orNull(record(ENGINE), description)
export type SwapEngine = Value<ReturnType<typeof swapEngine>>
export type SwapHooks = Value<ReturnType<typeof swapHooks>>
export type SwapHook = SwapHooks['suspend']

/** By the names under which servers offer them. */
export const mounts = (description: string) =>
  withoutDuplicates(list(text(1, MAX_MOUNT_NAME_LENGTH, undefined, MOUNT_NAME), 0, MAX_MOUNTS, description))
export const sha256 = (description?: string) => text(64, 64, description, SHA_256)
export const hostPath = (description: string) => text(1, MAX_PATH_LENGTH, description, ABSOLUTE_PATH)
/** Relative to the work folder of an attempt. */
export const workPath = (description: string) => text(0, MAX_PATH_LENGTH, description, NO_NUL)

const START_REFUSAL_CAUSES = ['host', 'task', 'passing'] as const

/** Why an attempt was not started. */
export const StartRefused = record({
  cause: oneOf(
    START_REFUSAL_CAUSES,
    'host: any task would have been refused. task: this task is refused on this host at every attempt. ' +
      'passing: neither; the next try may work at once',
  ),
  code: text(1, MAX_REFUSAL_CODE_LENGTH, 'Shown and counted: letters, digits and _'),
})
export type StartRefused = Value<typeof StartRefused>

/** In every snapshot of a server. */
export const RequestCounts = record(
  {
    full_queues: count(
      'Listening sockets of stopped tasks whose accept queue is full now: clients are refused',
    ),
    refused: count('Requests beyond what proxies hold for a task'),
    expired: count('Requests that proxies held for as long as they do, without a return of the task'),
  },
  'Refused requests for tasks that are out: full_queues now, the others since the start of the server, ' +
    'counted when a task returns. Absent: all are 0',
)
export type RequestCounts = Value<typeof RequestCounts>
