/**
 * `headroom gpu-server --standalone`: the controller of `headroom serve` and one GPU server in one process,
 * without a broker, with the REST API on a Unix socket.
 */
import { createSystemClock } from '../../controller/adapters/system-clock.ts'
import { guardProgram } from '../../gpu-server/guard/guard-program.ts'
import { startServing } from '../controller/serve.ts'
import { UsageError } from '../exit-codes.ts'
import { gpuServer, type GpuServerCommandOptions } from '../gpu-server/gpu-server.ts'
import { taskIdentityOf } from '../gpu-server/task-identity.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { readSettings } from '../settings/settings.ts'
import { connectInProcess } from '../controller/in-process-bus.ts'
import { LocalApi, socketPathOf } from './local-api.ts'

export interface StandaloneOptions extends GpuServerCommandOptions {
  readonly socket?: string
}

type Environment = Readonly<Record<string, string | undefined>>

/** Runs until SIGINT or SIGTERM. Throws as `serve` and `gpuServer` do. */
export async function standalone(options: StandaloneOptions, env: Environment): Promise<void> {
  refuseClusterSettings(env)
  // Before anything is opened.
  taskIdentityOf(options)
  const clock = createSystemClock()
  const bus = connectInProcess(clock)
  const { httpHost: host, httpPort: port } = readSettings(env)
  const api = new LocalApi({
    program: await guardProgram(),
    socketPath: socketPathOf(options.socket, env),
    tcp: env[ENVIRONMENT.httpPort.name] ? { host, port } : null,
    onNote: (line) => process.stderr.write(`headroom: ${line}\n`),
  })
  const serving = await startServing(env, { local: { bus: bus.controller, api } })
  try {
    process.stdout.write(serving.describe)
    // Ends first at a signal: it still reports to the controller.
    await gpuServer(options, env, bus.server)
  } finally {
    await serving.stop()
    clock.stop()
  }
}

function refuseClusterSettings(env: Environment): void {
  const { natsUrls, simulatedFleet } = ENVIRONMENT
  for (const { name } of [natsUrls, simulatedFleet])
    if (env[name]) throw new UsageError(`--standalone has no broker and no simulated servers: unset ${name}`)
}
