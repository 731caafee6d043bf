/** What a task says about its launch on a GPU server: passed on, without effect in a simulation. */
import {
  ABSOLUTE_PATH,
  IMAGE_REFERENCE,
  MOUNT_NAME,
  PORT_NAME,
  REQUEST_PATH,
  SHA_256,
} from '../../protocol/fields.ts'
import {
  MAX_ARGUMENT_LENGTH,
  MAX_ARGUMENTS,
  MAX_CPUS,
  MAX_HOOK_PATH_LENGTH,
  MAX_HOST_MIB,
  MAX_IMAGE_LENGTH,
  MAX_MOUNT_NAME_LENGTH,
  MAX_MOUNTS,
  MAX_PATH_LENGTH,
  MAX_PIDS,
  MAX_VRAM_MIB,
  MAX_PORT_NAME_LENGTH,
  MAX_PORTS,
  MIN_MEMORY_MIB,
  MIN_PIDS,
} from '../../protocol/limits.ts'
import type { SwapEngine, SwapHooks } from '../../protocol/message-fields.ts'
import { ENGINE_KINDS, PORT_PROTOCOLS, REQUESTED_SWAP_METHODS } from '../../protocol/units.ts'
import {
  boolean,
  choice,
  integer,
  list,
  nullable,
  optional,
  optionalAbsent,
  record,
  required,
  size,
  text,
  textLike,
  type Rule,
} from '../document/rule.ts'

const UNUSED = 'not used in a simulation.'
const image = textLike(new RegExp(IMAGE_REFERENCE.pattern), IMAGE_REFERENCE.description, MAX_IMAGE_LENGTH)
const ports = list(
  record({
    name: required(
      textLike(new RegExp(PORT_NAME.pattern), PORT_NAME.description, MAX_PORT_NAME_LENGTH),
      'Each name once.',
    ),
    target: required(integer(1, 65_535), 'TCP port on which the task listens.'),
    protocol: required(choice(...PORT_PROTOCOLS), 'What it speaks.'),
  }),
  0,
  MAX_PORTS,
)
const mounts = list(
  textLike(new RegExp(MOUNT_NAME.pattern), MOUNT_NAME.description, MAX_MOUNT_NAME_LENGTH),
  0,
  MAX_MOUNTS,
)
const workdir = textLike(new RegExp(SHA_256.pattern), SHA_256.description, 64)
const cwd = textLike(new RegExp(ABSOLUTE_PATH.pattern), ABSOLUTE_PATH.description, MAX_PATH_LENGTH)

const hook = record({
  command: optionalAbsent(list(text(MAX_ARGUMENT_LENGTH), 1, MAX_ARGUMENTS), 'Runs in the task.'),
  port: optionalAbsent(integer(1, 65_535), 'TCP port on which the task listens; with path.'),
  path: optionalAbsent(
    textLike(new RegExp(REQUEST_PATH.pattern), REQUEST_PATH.description, MAX_HOOK_PATH_LENGTH),
    'Sent as POST.',
  ),
})
/** A field that is left out is undefined, which no reader tells from absent. */
const swapHooks = record({
  suspend: required(hook, 'Moves its data out of VRAM.'),
  resume: required(hook, 'Moves it back.'),
}) as Rule<unknown> as Rule<SwapHooks>

const swapEngine = record({
  kind: required(choice(...ENGINE_KINDS), 'Which one.'),
  port: required(integer(1, 65_535), 'TCP port on which it listens.'),
  level: optionalAbsent(choice(1, 2), 'Of vllm: 1 keeps the weights in host memory, 2 drops them.'),
}) as Rule<unknown> as Rule<SwapEngine>

export const LAUNCH = {
  image: optional(
    nullable(image),
    null,
    'Container image of the command; not used in a simulation, whose servers offer every feature.',
  ),
  workdir: optional(nullable(workdir), null, 'Manifest of its folder, SHA-256; not used in a simulation.'),
  cwd: optional(nullable(cwd), null, 'Folder in which the command starts; not used in a simulation.'),
  mounts: optional(mounts, [], 'Data folders that it mounts; not used in a simulation.'),
  ports: optional(ports, [], 'Ports on which the command serves; not used in a simulation.'),
  wake_on_request: optional(
    nullable(boolean),
    null,
    'Whether requests bring it back; not used in a simulation, whose tasks say when they have work.',
  ),
  swap_method: optional(
    nullable(choice(...REQUESTED_SWAP_METHODS)),
    null,
    'driver, hooks, engine, or none, which is the same as noswap 1; otherwise not used in a simulation.',
  ),
  swap_hooks: optional(
    nullable(swapHooks),
    null,
    'How it is told to move its data; not used in a simulation.',
  ),
  swap_engine: optional(
    nullable(swapEngine),
    null,
    'The inference server that it is, with swap_method engine; not used in a simulation.',
  ),
  memory_mib: optional(nullable(size(MIN_MEMORY_MIB, MAX_HOST_MIB)), null, `Limit of host memory; ${UNUSED}`),
  cpus: optional(nullable(integer(1, MAX_CPUS)), null, `Limit of processors; ${UNUSED}`),
  pids_limit: optional(nullable(integer(MIN_PIDS, MAX_PIDS)), null, `Limit of processes; ${UNUSED}`),
  vram_limit_mib: optional(
    nullable(size(1, MAX_VRAM_MIB)),
    null,
    'The most VRAM on each GPU, growths beyond it are refused.',
  ),
}
