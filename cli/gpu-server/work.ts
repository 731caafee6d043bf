/**
 * `headroom work busy=10s idle=20s …`, or serve=PORT [hooks]: a task for testing a cluster. It reports over
 * its control socket (HEADROOM_SOCKET) when it is busy; without a socket it uses the CPU instead, which a
 * server without GPUs counts as work. A simulated server models the phases
 * (simulator/fleet/command-work.ts).
 */
import { once } from 'node:events'
import { createConnection, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { parseWork } from '../../simulator/fleet/command-work.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import { ModelMemory } from './model-memory.ts'
import { servedModel, serveModel } from './serve-model.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'

/** Time between checks for signals while using the CPU. */
const SLICE_MS = 20

export async function work(steps: readonly string[]): Promise<number> {
  const model = servedModel(steps)
  const phases = model === null ? parseWork(steps) : []
  if (typeof phases === 'string') throw new UsageError(`${phases}, or only serve=PORT and hooks`)
  if (model?.hasHooks === true) {
    const memory = ownMemory()
    await serveModel(
      model.port,
      (isBusy) => memory.tell(isBusy),
      () => memory.present(),
    )
  }
  const socket = await connectSocket(process.env['HEADROOM_SOCKET'])
  if (model !== null)
    await serveModel(
      model.port,
      (isBusy) => tell(socket, isBusy),
      () => Promise.resolve(false),
    )
  for (const phase of phases) {
    process.stdout.write(`${phase.kind} ${formatDuration(phase.ms)}\n`)
    tell(socket, phase.kind === 'busy')
    if (phase.kind === 'busy' && socket === null) await useCpu(phase.ms)
    else await wait(phase.ms)
  }
  socket?.end()
  return EXIT_OK
}

async function connectSocket(path: string | undefined): Promise<Socket | null> {
  if (path === undefined || path === '') return null
  const socket = createConnection(path)
  socket.on('error', () => socket.destroy())
  await once(socket, 'connect').catch(() => null)
  socket.unref()
  socket.resume()
  return socket.destroyed ? null : socket
}

function ownMemory(): ModelMemory {
  const { HEADROOM_SOCKET: path, HEADROOM_WORK: folder, HEADROOM_VRAM_MIB: mib } = process.env
  if (path === undefined || folder === undefined)
    throw new UsageError('`hooks` requires a control socket (HEADROOM_SOCKET): run the command as a task')
  return new ModelMemory(path, folder, Number(mib ?? 0))
}

function tell(socket: Socket | null, isBusy: boolean): void {
  if (socket !== null && !socket.destroyed) socket.write(`${JSON.stringify({ busy: isBusy })}\n`)
}

/** CPU time, not wall time: a task that was stopped meanwhile continues where it was. */
async function useCpu(ms: number): Promise<void> {
  const untilUs = cpuUs() + ms * 1000
  while (cpuUs() < untilUs) {
    const sliceUntilUs = Math.min(untilUs, cpuUs() + SLICE_MS * 1000)
    while (cpuUs() < sliceUntilUs);
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
