/** `headroom gpu-server`: adds this host's GPUs to a cluster until a signal arrives. */
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import type { Logger } from 'pino'
import { connectNatsBus } from '../../controller/adapters/nats-bus.ts'
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { createSystemRandom } from '../../controller/adapters/system-random.ts'
import type { NatsBus } from '../../controller/adapters/nats-bus.ts'
import type { Bus } from '../../controller/ports/bus.ts'
import { openDiskStorage } from '../../gpu-server/disk-storage.ts'
import { bootTime } from '../../gpu-server/guard/boot-time.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { attachmentsOf } from './attachments-of.ts'
import { openGuards } from '../../gpu-server/guard/local-guards.ts'
import type { WorkLimits } from '../../gpu-server/files/kept-work.ts'
import { whyNoFiles } from '../../gpu-server/files/workdirs.ts'
import { startGpuServer } from '../../gpu-server/server.ts'
import type { GpuServer } from '../../gpu-server/server.ts'
import type { TaskIdentity } from '../../gpu-server/devices/task-identity.ts'
import { nodeIdFromName } from '../../protocol/node-id.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import { createLog } from '../log.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { CommandFailure, UsageError } from '../exit-codes.ts'
import {
  checkBroker,
  checkFolders,
  checkKeyFile,
  taskIdentityOf,
  type TaskIdentityOptions,
} from './task-identity.ts'
import { acceleratorOf, type DeviceChoice } from './accelerator-of.ts'
import { helloRefusal } from '../hello-refusal.ts'
import { containersOf, offersOf, limitRootsOf, type MeansOptions } from './task-means.ts'
import { proxyRangeOf, type ProxyOptions } from './proxy-range.ts'
import { swapArenaOf, type SwapArenaOptions } from './swap-arena.ts'
import { natsSettings, type NatsSettings } from '../settings/nats-settings.ts'
import { valueOf } from './value-of.ts'
import { untilSignal } from '../until-signal.ts'

export interface GpuServerCommandOptions
  extends TaskIdentityOptions, MeansOptions, ProxyOptions, SwapArenaOptions, DeviceChoice {
  readonly workDir?: string
  readonly hostSwapMib?: Mib
  readonly hostLinkMibPerS?: number
  readonly idleAfter: DurationMs
  readonly stopTasks?: boolean
  readonly allowAttach?: boolean
}

/** For attempts that have ended and were reported, in total. */
const ENDED_OUTPUTS = { maxTasks: 1_000, maxBytes: 1024 * 1024 * 1024 }
/** With STOP_TIMEOUT_MS 315 s: the default of max_stop_grace_seconds plus 15 s. */
const STOP_TASKS_TIMEOUT_MS: DurationMs = 307_000
const STOP_TIMEOUT_MS = 8_000
const MIB = 1024 * 1024

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Runs until SIGINT or SIGTERM. Throws SettingsError and UsageError before anything is done, CommandFailure
 * when it cannot start. @param local the bus to a controller in this process; null: over a broker
 */
export async function gpuServer(
  options: GpuServerCommandOptions,
  env: Environment,
  local: Bus | null = null,
): Promise<void> {
  const broker = local === null ? natsSettings(env) : null
  if (broker === null && local === null) throw noBroker()
  const name = valueOf(env, ENVIRONMENT.nodeName) ?? hostname()
  const nodeId = valueOf(env, ENVIRONMENT.nodeId) ?? nodeIdFromName(name)
  const address = valueOf(env, ENVIRONMENT.nodeAddress) ?? hostname()
  const stateFolder = resolve(valueOf(env, ENVIRONMENT.nodeStateDir) ?? '')
  const workFolder = options.workDir === undefined ? join(stateFolder, 'work') : resolve(options.workDir)
  const identity = checkedIdentity(options, broker, valueOf(env, ENVIRONMENT.natsNkeyFile), [
    stateFolder,
    workFolder,
  ])
  const proxies = await proxyRangeOf(options, env)
  const arena = swapArenaOf(options, env, stateFolder)
  const log = createLog(valueOf(env, ENVIRONMENT.logLevel) ?? 'info')
  if (options.allowExec === true) logIdentity(log, identity, broker?.auth.kind === 'none')
  const clock = createSystemClock(bootTime)
  const { accelerator, hostSwapMib } = acceleratorOf(options, clock, (line) => log.warn(line), arena)
  let remote: NatsBus | null = null
  let server: GpuServer | null = null
  try {
    const storage = openDiskStorage({ folder: stateFolder, onFault: (fault) => die(log, fault) })
    const program = await guardProgram()
    const containers = await containersOf(options, { stateFolder, program }, env, log)
    const filesProgram = await filesProgramOf(program, stateFolder, log)
    const limitRoots = limitRootsOf(options, containers, log)
    const guards = await openGuards({
      folder: stateFolder,
      program,
      endedOutputs: ENDED_OUTPUTS,
      isIsolated: true,
      onFault: (fault) => die(log, fault),
      ...{ limitRoots, containers },
    })
    const attachments = attachmentsOf({ stateFolder, program }, clock)
    if (broker !== null) remote = busTo(broker, name, log, () => server?.reconnected())
    const bus = local ?? remote
    if (bus === null) throw noBroker()
    server = await startGpuServer({
      nodeId,
      name,
      address,
      hostSwapMib: options.hostSwapMib ?? hostSwapMib,
      hostLinkMibPerS: options.hostLinkMibPerS ?? null,
      ...offersOf(options, { containers, filesProgram, limitRoots }),
      ...{ filesProgram, workLimits: workLimitsOf(env) },
      ...{ attachments, proxies },
      stateFolder,
      workFolder,
      storage,
      ...{ guards, containers },
      program,
      accelerator,
      clock,
      random: createSystemRandom().stream('server'),
      bus,
      identity,
      environment: environmentOf(env),
      maxOutputBytes: (valueOf(env, ENVIRONMENT.outputLimitMib) ?? 0) * MIB,
      idleAfterMs: options.idleAfter,
      onNote: (line) => log.warn(line),
      onRefused: (reason) => log.error({ reason }, helloRefusal(reason)),
    })
    log.info(
      {
        node: nodeId,
        name,
        device: accelerator.kind,
        gpus: accelerator.gpus().length,
        tasks: server.taskCount,
      },
      'GPU server runs',
    )
    await untilSignal()
    setTimeout(
      () => process.exit(1),
      STOP_TIMEOUT_MS + (options.stopTasks === true ? STOP_TASKS_TIMEOUT_MS : 0),
    ).unref()
    await end(server, options, log)
  } catch (error) {
    throw asFailure(error)
  } finally {
    await remote?.close()
    clock.stop()
  }
}

function noBroker(): UsageError {
  return new UsageError(
    `no broker is configured: set ${ENVIRONMENT.natsUrls.name}, or run this host alone with --standalone`,
  )
}

function busTo(broker: NatsSettings, name: string, log: Logger, onConnected: () => void): NatsBus {
  return connectNatsBus({
    ...broker,
    name: `gpu-server ${name}`,
    onState: (state, detail) => {
      log.info({ state, detail }, 'broker')
      if (state === 'connected') onConnected()
    },
    onBadMessage: (subject, why) => log.warn({ subject, why }, 'message refused'),
    onSlowConsumer: (pattern) => log.warn({ pattern }, 'messages dropped: too many are waiting'),
    onDenied: (operation, subject) => log.error({ operation, subject }, 'the broker denied permission'),
  })
}

/** Throws UsageError or CommandFailure where tasks would have too many or too few rights. */
function checkedIdentity(
  options: GpuServerCommandOptions,
  broker: NatsSettings | null,
  keyFile: string | null,
  folders: readonly string[],
): TaskIdentity {
  if (options.allowAttach === true && options.allowExec !== true)
    throw new UsageError('--allow-attach requires --allow-exec: there are no commands to attach to')
  const identity = taskIdentityOf(options)
  if (broker !== null) checkBroker(identity, broker)
  if (options.allowExec !== true) return identity
  checkKeyFile(keyFile, identity)
  checkFolders(folders, identity)
  return identity
}

/** Logs at every start what an option gave up. */
function logIdentity(log: Logger, identity: TaskIdentity, isBrokerOpen: boolean): void {
  if (identity.kind === 'root')
    log.warn('--task-user root: tasks run as root and can read everything on this host')
  if (identity.kind === 'task_user')
    log.warn('--task-user: all tasks share one user and can read each other’s files')
  if (identity.kind !== 'server_user') return
  log.warn('--tasks-as-me: tasks run as the user of this server and can read its key and state')
  if (isBrokerOpen) log.warn('--tasks-as-me: the broker requires no key; accepted because it is on loopback')
}

async function end(server: GpuServer, options: GpuServerCommandOptions, log: Logger): Promise<void> {
  const { taskCount } = server
  if (options.stopTasks !== true)
    log.info({ tasks: taskCount }, 'the server stops; tasks keep running under their guards')
  else if (await server.endTasks(STOP_TASKS_TIMEOUT_MS))
    log.info(
      { tasks: taskCount },
      'the server stops; its tasks have ended, and the controller has acknowledged it',
    )
  else
    log.warn(
      { tasks: server.taskCount },
      'the server stops; its tasks are ending, but the controller has not acknowledged all of them',
    )
  await server.close()
}

/** R10: nothing is acknowledged any more. */
function die(log: Logger, fault: Error): void {
  log.fatal(
    { err: fault },
    'the state folder failed: the server stops; its tasks keep running under their guards',
  )
  process.stderr.write(`headroom: ${fault.message}\n`)
  process.exit(1)
}

/** Null: this server accepts no tasks with files and reads none, and the controller knows. */
async function filesProgramOf(program: string, folder: string, log: Logger): Promise<string | null> {
  const why = await whyNoFiles(program, folder)
  if (why === null) return program
  log.warn({ why }, 'this server does not handle files of tasks')
  return null
}

function workLimitsOf(env: Environment): WorkLimits {
  return {
    retentionMs: (valueOf(env, ENVIRONMENT.workRetentionSeconds) ?? 0) * 1000,
    maxBytes: (valueOf(env, ENVIRONMENT.workLimitMib) ?? 0) * MIB,
  }
}

/** A task gets nothing of the server's own environment except what every program needs. */
function environmentOf(env: Environment): Readonly<Record<string, string>> {
  const home = env['HOME']
  return {
    PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin',
    ...(home === undefined ? {} : { HOME: home }),
    ...(env['LANG'] === undefined ? {} : { LANG: env['LANG'] }),
    ...(env['LD_LIBRARY_PATH'] === undefined ? {} : { LD_LIBRARY_PATH: env['LD_LIBRARY_PATH'] }),
  }
}

const START_FAULTS: ReadonlySet<string> = new Set(['AcceleratorFault', 'StateFault', 'GuardFault'])

function asFailure(error: unknown): unknown {
  return error instanceof Error && START_FAULTS.has(error.name) ? new CommandFailure(error.message) : error
}
