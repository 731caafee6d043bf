/**
 * Real processes with a stub driver that, like NVIDIA's, works in one of their threads and ends a process
 * that uses a GPU while its memory is swapped out.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { NvidiaAccelerator } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { compile, CudaProgram } from '../gpu/cuda-program.ts'
import { StubDriver } from '../support/nvidia-stubs/stub-driver.ts'
import { WAIT } from '../support/wait.ts'

const MIB = 64
const DEBUGGER = join(import.meta.dirname, '../support/nvidia-stubs/thread-debugger.ts')
const FILES = { proc: '/proc', cgroup: '/sys/fs/cgroup' }
let driver: StubDriver
let folder: string
let program: string
const opened: NvidiaAccelerator[] = []
const running: CudaProgram[] = []

beforeAll(() => {
  driver = new StubDriver()
  folder = mkdtempSync(join(tmpdir(), 'headroom-still-'))
  program = compile('fill', folder)
})
beforeEach(() => driver.reset())
afterEach(async () => {
  await Promise.all(running.splice(0).map((each) => each.end()))
  await Promise.all(opened.splice(0).map((each) => each.close()))
})
afterAll(() => {
  driver.remove()
  rmSync(folder, { recursive: true })
})

async function open(): Promise<NvidiaAccelerator> {
  const accelerator = driver.accelerator({ files: FILES })
  opened.push(accelerator)
  await accelerator.open()
  return accelerator
}

async function start(accelerator: NvidiaAccelerator): Promise<CudaProgram> {
  const environment = accelerator.environment([0])
  const started = await CudaProgram.start({
    program,
    cudaLibrary: driver.cudaLibrary,
    name: 'asks',
    mib: MIB,
    environment,
  })
  running.push(started)
  return started
}

/** One letter per thread. */
function threadStates({ pid }: { readonly pid: number }): string {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8'),
  )
  return threads.map((status) => /^State:\s*(\S)/m.exec(status)?.[1] ?? '').join('')
}

/** A released thread stops a moment later. */
const untilStopped = (task: CudaProgram): Promise<void> =>
  vi.waitFor(() => expect(threadStates(pidOf(task))).toMatch(/^T+$/), WAIT)

const pidOf = (task: CudaProgram): { readonly pid: number } => ({ pid: task.processIds()[0] ?? 0 })

test('A program that uses its GPU all the time is stopped while swapped out, then continues', async () => {
  const accelerator = await open()
  const task = await start(accelerator)
  expect(await accelerator.swapOut(task)).toBe('done')
  await untilStopped(task)
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(threadStates(pidOf(task))).not.toContain('T')
  expect(await task.isIntact()).toBe(true)
})

test('A later server reads the state of a stopped process, which stays stopped', async () => {
  const before = await open()
  const task = await start(before)
  expect(await before.swapOut(task)).toBe('done')
  await before.close()
  const accelerator = await open()
  expect(await accelerator.residencyOf(task)).toBe('swapped_out')
  await untilStopped(task)
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(await task.isIntact()).toBe(true)
})

test('A failed copy leaves all threads running', async () => {
  const accelerator = await open()
  const task = await start(accelerator)
  driver.rule('cuCheckpointProcessCheckpoint', 'code 999')
  expect(await accelerator.swapOut(task)).toBe('copy_failed')
  expect(threadStates(pidOf(task))).not.toMatch(/[Tt]/)
  expect(await task.isIntact()).toBe(true)
})

test('A process whose threads cannot be stopped is not swapped, and the reason says so', async () => {
  const accelerator = await open()
  const task = await start(accelerator)
  const thread =
    readdirSync(`/proc/${pidOf(task).pid}/task`)
      .map(Number)
      .at(-1) ?? 0
  const other = spawn(process.execPath, [DEBUGGER, String(thread)], { stdio: ['pipe', 'pipe', 'inherit'] })
  expect(String((await once(other.stdout, 'data'))[0])).toBe('held\n')
  expect(await accelerator.swapOut(task)).toBe('copy_failed')
  other.kill('SIGKILL')
  await once(other, 'exit')
  expect(await accelerator.whyNotSwappable(task)).toBe(
    `thread ${thread} cannot be stopped: ptrace seize: EPERM`,
  )
  expect(threadStates(pidOf(task))).not.toMatch(/[Tt]/)
  expect(await task.isIntact()).toBe(true)
})
