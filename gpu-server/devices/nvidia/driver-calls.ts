/**
 * A helper process: `driver-calls.ts nvml|cuda LIBRARY KOFFI PROC`. It calls the driver for its parent, so
 * that a driver that hangs or crashes affects this process and not the server. Requests and answers use
 * Node's channel between parent and child; when the channel closes, the helper ends, even during a call.
 */
import { CheckpointCalls } from './checkpoint-calls.ts'
import { loadLibrary } from './foreign-library.ts'
import { HelperFault, type FaultReport, type HelperAnswer, type HelperRequest } from './helper-messages.ts'
import { Nvml } from './nvml.ts'
import { StillProcesses } from './still-process.ts'
import { TraceCalls } from './trace-calls.ts'

type Operation = (request: HelperRequest) => Promise<unknown>

const [role, libraryPath = '', ffiModule = '', proc = ''] = process.argv.slice(2)
let operations: Promise<ReadonlyMap<string, Operation>> | null = null

// Ctrl-C reaches the whole process group; the parent decides when the helper ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})

process.on('message', (request) => void answer(request as HelperRequest))
// Not `exit`, which waits for calls in progress.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))

async function answer(request: HelperRequest): Promise<void> {
  send(await perform(request))
}

async function perform(request: HelperRequest): Promise<HelperAnswer> {
  try {
    operations ??= role === 'nvml' ? reading() : moving()
    const operation = (await operations).get(request.op)
    if (operation === undefined) throw new Error(`no operation ${request.op}`)
    return { id: request.id, value: (await operation(request)) ?? null }
  } catch (cause) {
    return { id: request.id, fault: report(cause) }
  }
}

async function reading(): Promise<ReadonlyMap<string, Operation>> {
  const nvml = new Nvml(await loadLibrary(libraryPath, ffiModule), () => Date.now() * 1000)
  return new Map<string, Operation>([
    ['snapshot', () => nvml.snapshot(false)],
    ['sample', () => nvml.snapshot(true)],
  ])
}

async function moving(): Promise<ReadonlyMap<string, Operation>> {
  const calls = new CheckpointCalls(await loadLibrary(libraryPath, ffiModule))
  const still = new StillProcesses({
    trace: await TraceCalls.load(ffiModule),
    proc,
    restoreThread: (pid) => calls.restoreThread(pid),
    giveUp,
  })
  return new Map<string, Operation>([
    ['attach', () => calls.attach()],
    ['state', ({ pid }) => still.continueIfStopped(known(pid), () => calls.state(known(pid)))],
    ['restore_thread', ({ pid }) => calls.restoreThread(known(pid))],
    ['lock', ({ pid, timeoutMs }) => calls.lock(known(pid), known(timeoutMs))],
    ['checkpoint', ({ pid }) => still.continueAround(known(pid), () => calls.checkpoint(known(pid)))],
    ['restore', ({ pid }) => still.continueAround(known(pid), () => calls.restore(known(pid)))],
    ['unlock', ({ pid }) => still.continueIfStopped(known(pid), () => calls.unlock(known(pid)))],
  ])
}

function giveUp(why: string): never {
  process.stderr.write(why)
  process.exit(1)
}

function known(value: number | undefined): number {
  if (value === undefined) throw new Error('the request has no number')
  return value
}

function report(cause: unknown): FaultReport {
  if (cause instanceof HelperFault) return { kind: cause.kind, message: cause.message, code: cause.code }
  return { kind: 'lost', message: `helper: ${String(cause)}`, code: null }
}

function send(message: HelperAnswer): void {
  process.send?.(message)
}
