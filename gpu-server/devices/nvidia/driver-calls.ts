/**
 * A helper process: `driver-calls.ts nvml|cuda LIBRARY KOFFI PROC [ARENA]`. It calls the driver for its
 * parent, so that a driver that hangs or crashes affects this process and not the server. Requests and
 * answers use Node's channel between parent and child; when the channel closes, the helper ends, even during
 * a call.
 */
import { constants } from 'node:os'
import { StorageCalls } from './storage-calls.ts'
import { type ArenaPlace, SwapArena } from './swap-arena.ts'
import { CheckpointCalls } from './checkpoint-calls.ts'
import { type ForeignLibrary, loadDirectly, loadLibrary } from './foreign-library.ts'
import {
  HelperFault,
  type FaultReport,
  type HelperAnswer,
  type HelperNote,
  type HelperRequest,
} from './helper-messages.ts'
import { Nvml } from './nvml.ts'
import { StillProcesses } from './still-process.ts'
import { TraceCalls } from './trace-calls.ts'

/** prctl(2). */
const PR_SET_PDEATHSIG = 1

type Operation = (request: HelperRequest) => Promise<unknown>

const [role, libraryPath = '', ffiModule = '', proc = '', place] = process.argv.slice(2)
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
  const library = await loadLibrary(libraryPath, ffiModule)
  const calls = new CheckpointCalls(library)
  const still = new StillProcesses({
    trace: await TraceCalls.load(ffiModule),
    proc,
    restoreThread: (pid) => calls.restoreThread(pid),
    giveUp,
  })
  const arena = place === undefined ? null : await openArena(JSON.parse(place) as ArenaPlace, library, calls)
  return new Map<string, Operation>([
    ['attach', () => calls.attach()],
    ['state', ({ pid }) => still.continueIfStopped(known(pid), () => calls.state(known(pid)))],
    ['restore_thread', ({ pid }) => calls.restoreThread(known(pid))],
    ['lock', ({ pid, timeoutMs }) => calls.lock(known(pid), known(timeoutMs))],
    [
      'checkpoint',
      ({ pid }) =>
        still.continueAround(known(pid), async () => {
          await arena?.settle(known(pid))
          await calls.checkpoint(known(pid))
        }),
    ],
    [
      'restore',
      ({ pid }) =>
        still.continueAround(known(pid), async () => {
          if ((await arena?.restore(known(pid))) !== true) await calls.restore(known(pid))
        }),
    ],
    [
      'unlock',
      ({ pid }) =>
        still.continueIfStopped(known(pid), async () => {
          await arena?.settle(known(pid))
          await calls.unlock(known(pid))
        }),
    ],
    ['open_arena', () => known(arena).open()],
    ['reserve', ({ pid, mibs, freshMib }) => known(arena).reserve(known(pid), known(mibs), known(freshMib))],
    ['unreserve', ({ pid }) => Promise.resolve(known(arena).unreserve(known(pid)))],
    ['store', ({ pid }) => still.continueAround(known(pid), () => known(arena).store(known(pid)))],
  ])
}

async function openArena(
  place: ArenaPlace,
  library: ForeignLibrary,
  calls: CheckpointCalls,
): Promise<SwapArena> {
  // Some of its calls block this thread, which then does not notice the end of its parent.
  const direct = await loadDirectly('libc.so.6', ffiModule)
  direct('prctl', 'int', ['int', 'long', 'long', 'long', 'long'])(
    PR_SET_PDEATHSIG,
    constants.signals.SIGKILL,
    0,
    0,
    0,
  )
  return new SwapArena({
    ...{ place, ffiModule, proc },
    storage: async () => {
      await calls.attach()
      return StorageCalls.open(library)
    },
    state: (pid) => calls.state(pid),
    onNote: (line) => send({ note: `swap arena: ${line}` }),
  })
}

function giveUp(why: string): never {
  process.stderr.write(why)
  process.exit(1)
}

function known<T>(value: T | null | undefined): T {
  if (value === undefined || value === null) throw new Error('the request is not complete')
  return value
}

function report(cause: unknown): FaultReport {
  if (cause instanceof HelperFault) return { kind: cause.kind, message: cause.message, code: cause.code }
  return { kind: 'lost', message: `helper: ${String(cause)}`, code: null }
}

function send(message: HelperAnswer | HelperNote): void {
  process.send?.(message)
}
