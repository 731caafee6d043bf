/** The order to start an attempt, and what all orders of the controller have in common. */
import { count, flag, integer, oneOf, optional, orNull, record } from './fields.ts'
import type { Value } from './fields.ts'
import { MAX_VRAM_MIB } from './limits.ts'
import {
  attempt,
  boot,
  commandLine,
  environment,
  gpuIndexes,
  hostPath,
  image,
  mounts,
  passedOn,
  ports,
  recordedName,
  reserveMib,
  sha256,
  stopGraceMs,
  swapEngine,
  swapHooks,
} from './message-fields.ts'
import { LIMITS_RECORD } from './resource-limits.ts'
import { SWAP_METHODS } from './units.ts'

export const order = {
  ...attempt,
  valid_until_mono: count("The command expires at this time of the node's own clock (R3)"),
  node_boot: record(boot, 'The command is void when the node has another boot (R3)'),
  safety_reserve_mib: optional(
    reserveMib(
      'The reserve on which the decision was based, which the node applies from then on, ' +
        'like the reserve of ' +
        'a lease. Absent from older controllers',
    ),
  ),
}

export const StartCommand = record({
  op: oneOf(['start']),
  ...order,
  gpus: gpuIndexes,
  vram_mib: integer(1, MAX_VRAM_MIB, 'Demand on each GPU'),
  ...passedOn,
  command: commandLine,
  image: optional(
    image(
      'Container image in which the command runs. Absent: on the host. Sent only to servers with this ' +
        'feature',
    ),
  ),
  workdir: optional(
    sha256(
      'SHA-256 of the manifest of the uploaded folder that its work folder contains at the start ' +
        '(`read_blob`). Absent: none. Sent only to servers with the feature files, as cwd',
    ),
  ),
  cwd: optional(
    hostPath('Folder in which the command starts, entered as the user of the task. Absent: its work folder'),
  ),
  mounts: optional(
    mounts(
      'Data folders of the server that the task reads, each /mnt/NAME in a container. Absent: none. Sent ' +
        'only to servers with the feature mount:NAME of each',
    ),
  ),
  limits: optional(LIMITS_RECORD),
  env: optional(
    orNull(
      environment,
      'Environment variables of the task. Absent: none. Null: their values cannot be read any more, and ' +
        'the start is refused. Sent only to servers with this feature',
    ),
  ),
  name: optional(recordedName("For the server's record only, as owner. Absent from older controllers")),
  owner: optional(orNull(recordedName())),
  stop_grace_ms: optional(
    stopGraceMs('Time between SIGTERM and SIGKILL when its server has to end its tasks. Absent: none'),
  ),
  ports: optional(ports('Requests to these ports wake it. Absent: to any that it listens on')),
  wake_on_request: optional(
    flag('Whether a request wakes it while it is swapped out. Absent: not declared, and it does'),
  ),
  swap_method: optional(
    oneOf(
      SWAP_METHODS,
      'hooks: the task moves its data itself when told. Sent only to servers with the feature swap_hooks. ' +
        'Absent: driver',
    ),
  ),
  swap_hooks: optional(swapHooks('How it is told. Absent: on its control socket')),
  swap_engine: optional(swapEngine('Of method engine. Sent only to servers with this feature')),
})
export type StartCommand = Value<typeof StartCommand>
