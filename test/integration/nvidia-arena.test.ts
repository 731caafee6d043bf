/** Swaps through the swap arena: the stub driver maps the memory of processes, whose bytes really move. */
import { spawn } from 'node:child_process'
import { createCipheriv, createHash } from 'node:crypto'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import type { ArenaPlace } from '../../gpu-server/devices/nvidia/swap-arena.ts'
import type { NvidiaAccelerator, NvidiaOptions } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { HOST_MARGIN_MIB } from '../../gpu-server/devices/nvidia/swaps.ts'
import { compile, CudaProgram } from '../gpu/cuda-program.ts'
import { StubDriver, stubTask } from '../support/nvidia-stubs/stub-driver.ts'
import { WAIT } from '../support/wait.ts'

const MIB = 1024 * 1024
const HEADER_BYTES = 2 * MIB
/** State of a process of 3 MiB in the stub driver. */
const LOCKED = '1 c 0 3'
const CHECKPOINTED = '2 c 0 3'
const HELPER_ENDED = 'NVIDIA cuda helper: it ended with SIGABRT'
const OWNER = join(import.meta.dirname, '../support/nvidia-stubs/helper-owner.ts')
let driver: StubDriver
let folder: string
const accelerators: NvidiaAccelerator[] = []

beforeAll(() => {
  driver = new StubDriver()
  folder = join(driver.folder, 'arena')
})
beforeEach(() => {
  driver.reset()
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
})
afterEach(async () => {
  await Promise.all(accelerators.splice(0).map((accelerator) => accelerator.close()))
})
afterAll(() => driver.remove())

function place(mib = 16): ArenaPlace {
  return {
    file: join(folder, 'memory'),
    records: join(folder, 'records'),
    bytes: mib * MIB,
    pieceBytes: MIB,
  }
}

async function opened(options: NvidiaOptions = {}): Promise<NvidiaAccelerator> {
  const accelerator = driver.accelerator({ arena: place(), ...options })
  accelerators.push(accelerator)
  await accelerator.open()
  expect(await accelerator.whyNotSwappable(stubTask([]))).toBe(null)
  return accelerator
}

async function restarted(options: NvidiaOptions = {}): Promise<NvidiaAccelerator> {
  await Promise.all(accelerators.splice(0).map((accelerator) => accelerator.close()))
  return opened(options)
}

/** Bytes that repeat nowhere, so that a shifted copy differs. */
function bytesOf(seed: string, length: number): Buffer {
  const key = createHash('sha256').update(seed).digest().subarray(0, 16)
  return createCipheriv('aes-128-ctr', key, Buffer.alloc(16)).update(Buffer.alloc(length))
}

/** A process of one GPU with contents; `mib` is what NVML reports. */
function started(pid: number, mib: number, seed = `process ${pid}`): Buffer {
  const bytes = bytesOf(seed, mib * MIB - 5_000)
  driver.process(pid, { mib: [mib] })
  driver.fill(pid, bytes)
  return bytes
}

const records = (): readonly string[] => (existsSync(place().records) ? readdirSync(place().records) : [])

/** What the arena has of all processes. */
function arenaBytes(): Buffer {
  const file = openSync(place().file, 'r')
  const bytes = Buffer.alloc(16 * MIB)
  const length = readSync(file, bytes, 0, bytes.length, HEADER_BYTES)
  closeSync(file)
  return bytes.subarray(0, length)
}

const untilCleared = (): Promise<void> =>
  vi.waitFor(() => expect(arenaBytes().some((byte) => byte !== 0)).toBe(false), WAIT)

/** Whether the arena has exactly these processes. */
const expectStored = (...pids: readonly number[]): void =>
  expect(records().map((name) => Number.parseInt(name))).toEqual(pids)

const isByDriver = (pid: number): boolean => existsSync(join(driver.state, `host-${pid}-0`))

test('A process returns from the arena with its bytes, and needs no memory of its cgroup', async () => {
  const bytes = started(11, 3)
  driver.kernelProcess(11, { maps: '7f0-7f1 r-xp 0 00:00 0 /usr/lib/libcuda.so.1', cgroup: '0::/task\n' })
  mkdirSync(join(driver.files.cgroup, 'task'), { recursive: true })
  writeFileSync(join(driver.files.cgroup, 'task/memory.max'), `${MIB}\n`)
  writeFileSync(join(driver.files.cgroup, 'task/memory.current'), '0\n')
  const accelerator = await opened()
  const task = stubTask([11])
  expect(await accelerator.swapOut(task)).toBe('done')
  expect((await accelerator.sample([task])).freeMib).toEqual([1000])
  expect(driver.contents(11).equals(bytes)).toBe(false)
  expect(isByDriver(11)).toBe(false)
  expect(await accelerator.residencyOf(task)).toBe('swapped_out')
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(bytes)).toBe(true)
  expect(driver.stateOf(11)).toBe('running')
  expect(driver.actions()).toEqual(['lock 11', 'checkpoint 11', 'restore 11', 'unlock 11'])
  expect(task.signals).toEqual(['suspend', 'resume'])
  expect(records()).toEqual([])
})

test('A process on two GPUs gets the bytes of each GPU back', async () => {
  driver.gpu(1, { totalMib: 1000 })
  driver.process(11, { mib: [3, 2] })
  const [first, second] = [bytesOf('a', 2 * MIB + 5), bytesOf('b', MIB + 1)]
  driver.fill(11, first)
  driver.fill(11, second, 1)
  const accelerator = await opened()
  const task = stubTask([11], { gpus: [0, 1] })
  expect(await accelerator.swapOut(task)).toBe('done')
  expectStored(11)
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(first)).toBe(true)
  expect(driver.contents(11, 1).equals(second)).toBe(true)
})

test.each([16, 0])(
  'A later server with an arena of %i MiB restores what its predecessor stored',
  async (mib) => {
    const [first, second] = [started(11, 3), started(12, 4)]
    const before = await opened()
    expect(await before.swapOut(stubTask([11]))).toBe('done')
    expect(await before.swapOut(stubTask([12], { taskId: 'task-2' }))).toBe('done')
    expectStored(11, 12)
    const after = await restarted({ arena: place(mib) })
    for (const pid of [12, 11]) {
      const task = stubTask([pid])
      expect(await after.residencyOf(task)).toBe('swapped_out')
      expect(await after.swapIn(task)).toBe('done')
    }
    expect(driver.contents(11).equals(first)).toBe(true)
    expect(driver.contents(12).equals(second)).toBe(true)
  },
)

test('What does not fit into the arena is swapped by the driver alone', async () => {
  const [first, second] = [started(11, 10), started(12, 7)]
  const accelerator = await opened()
  const [one, two] = [stubTask([11]), stubTask([12], { taskId: 'task-2' })]
  expect(await accelerator.swapOut(one)).toBe('done')
  expect(await accelerator.swapOut(two)).toBe('done')
  expect([isByDriver(11), isByDriver(12)]).toEqual([false, true])
  expect(await accelerator.swapIn(two)).toBe('done')
  expect(await accelerator.swapIn(one)).toBe('done')
  expect(driver.contents(11).equals(first)).toBe(true)
  expect(driver.contents(12).equals(second)).toBe(true)
  started(12, 7)
  expect(await accelerator.swapOut(two)).toBe('done')
  expect(driver.calls().filter((call) => call === 'complete 12')).toHaveLength(1)
})

test('The arena takes no more of the host than is left, and reuses what it has', async () => {
  started(11, 4)
  const accelerator = await opened()
  const task = stubTask([11])
  driver.hostMemory(HOST_MARGIN_MIB + 3)
  expect(await accelerator.swapOut(task)).toBe('no_host_memory')
  expect(driver.actions()).toEqual([])
  driver.hostMemory(HOST_MARGIN_MIB + 4)
  expect(await accelerator.swapOut(task)).toBe('done')
  expect(isByDriver(11)).toBe(false)
  expect(await accelerator.swapIn(task)).toBe('done')
  driver.hostMemory(0)
  expect(await accelerator.swapOut(task)).toBe('done')
  expect(isByDriver(11)).toBe(false)
})

test('A driver without custom storage swaps by its own method, and one note says why', async () => {
  const cudaLibrary = driver.compile('cuda.c', 'cuda-580.so', '-DCUDA_VERSION=13000')
  const bytes = [started(11, 3), started(12, 3)]
  const accelerator = await opened({ cudaLibrary })
  await vi.waitFor(() => expect(driver.notes).toHaveLength(1), WAIT)
  expect(driver.notes[0]).toMatch(/^tasks are swapped without the swap arena: .* driver 615 or newer has it$/)
  for (const pid of [11, 12, 11]) {
    const task = stubTask([pid], { taskId: `task-${pid}` })
    expect(await accelerator.swapOut(task)).toBe('done')
    expect(isByDriver(pid)).toBe(true)
    expect(await accelerator.swapIn(task)).toBe('done')
  }
  expect([11, 12].map((pid) => driver.contents(pid).equals(bytes[pid - 11] ?? Buffer.alloc(0)))).toEqual([
    true,
    true,
  ])
  expect(driver.notes).toHaveLength(2)
})

test('A size that the driver does not report is not stored in the arena', async () => {
  started(11, 3)
  driver.process(11, { mib: [-1] })
  const accelerator = await opened()
  expect(await accelerator.swapOut(stubTask([11]))).toBe('done')
  expect(isByDriver(11)).toBe(true)
})

test('A process with more memory than reported is stored anyway', async () => {
  const bytes = bytesOf('large', 5 * MIB)
  driver.process(11, { mib: [2] })
  driver.fill(11, bytes)
  const accelerator = await opened({ arena: place(3) })
  const task = stubTask([11])
  expect(await accelerator.swapOut(task)).toBe('done')
  expect(isByDriver(11)).toBe(false)
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(bytes)).toBe(true)
})

test.each([
  ['cuMemHostRegister_v2', 'code 2', 'cuMemHostRegister: out of memory (CUDA_ERROR_OUT_OF_MEMORY)'],
  ['cuCheckpointProcessCheckpoint', 'once 801', 'not supported by this driver or GPU'],
])('If %s fails, the driver swaps by its own method', async (name, rule, why) => {
  const bytes = started(11, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  driver.rule(name, rule)
  expect(await accelerator.swapOut(task)).toBe('done')
  expect(driver.notes.at(-1)).toContain(why)
  expect(isByDriver(11)).toBe(true)
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(bytes)).toBe(true)
  expect(await accelerator.whyNotSwappable(task)).toBe(null)
})

test.each(['cuMemcpyDtoHAsync_v2', 'cuMemcpyHtoDAsync_v2', 'cuStreamQuery'])(
  'A copy that fails once in %s is repeated',
  async (name) => {
    const bytes = started(11, 3)
    const accelerator = await opened()
    const task = stubTask([11])
    driver.rule(name, 'once 719')
    expect(await accelerator.swapOut(task)).toBe('done')
    expectStored(11)
    expect(await accelerator.swapIn(task)).toBe('done')
    expect(driver.contents(11).equals(bytes)).toBe(true)
    expect(driver.notes.at(-1)).toMatch(/^swap arena: a copy is tried again: cu/)
  },
)

test('A copy out that keeps failing is not completed, and its room is cleared and used again', async () => {
  const bytes = started(11, 12)
  const accelerator = await opened()
  const task = stubTask([11])
  driver.rule('cuStreamQuery', 'code 719')
  expect(await accelerator.swapOut(task)).toBe('copy_failed')
  const why = 'process 11 is lost: the driver does not undo a swap-out that has begun; cancel it'
  expect(driver.notes.at(-1)).toBe(`task task-1 attempt 1: ${why}`)
  expect(await accelerator.whyNotSwappable(task)).toBe(why)
  expect(driver.contents(11).equals(bytes)).toBe(true)
  expect(driver.calls()).not.toContain('complete 11')
  driver.withoutRule('cuStreamQuery')
  started(12, 12)
  expect(await accelerator.swapOut(stubTask([12], { taskId: 'task-2' }))).toBe('done')
  expect(isByDriver(12)).toBe(false)
  driver.end(11)
  await vi.waitFor(() => expect(driver.calls()).toContain('complete 11'), WAIT)
})

test('A copy in that keeps failing leaves the process swapped out, and a later one succeeds', async () => {
  const bytes = started(11, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  expect(await accelerator.swapOut(task)).toBe('done')
  expectStored(11)
  driver.rule('cuMemcpyHtoDAsync_v2', 'code 719')
  expect(await accelerator.swapIn(task)).toBe('copy_failed')
  expect(driver.stateOf(11)).toBe('checkpointed')
  expect(await accelerator.residencyOf(task)).toBe('swapped_out')
  driver.withoutRule('cuMemcpyHtoDAsync_v2')
  const after = await restarted()
  expect(await after.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(bytes)).toBe(true)
})

test('Before the driver gives up the memory, the record is on the disk', async () => {
  started(11, 3)
  const accelerator = await opened()
  driver.rule('cuCheckpointOperationComplete', 'wait')
  const outcome = accelerator.swapOut(stubTask([11]))
  await vi.waitFor(() => expect(driver.calls()).toContain('complete 11'), WAIT)
  expect(records()).toHaveLength(1)
  expect(readFileSync(join(place().records, records()[0] ?? ''), 'utf8')).toContain('"phase":"stored"')
  driver.withoutRule('cuCheckpointOperationComplete')
  expect(await outcome).toBe('done')
})

test('A process is not continued after a restore whose end is unknown: it is restored again', async () => {
  const bytes = started(11, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  expect(await accelerator.swapOut(task)).toBe('done')
  expectStored(11)
  driver.rule('cuMemcpyHtoDAsync_v2', 'once crash')
  const outcome = accelerator.swapIn(task)
  await vi.waitFor(() => expect(driver.notes.at(-1)).toBe(HELPER_ENDED), WAIT)
  driver.write('process-11', LOCKED)
  expect(driver.contents(11).equals(bytes)).toBe(false)
  expect(await outcome).toBe('done')
  expect(driver.stateOf(11)).toBe('running')
  expect(driver.contents(11).equals(bytes)).toBe(true)
})

test('A swap-out that the driver undid by itself leaves nothing in the arena', async () => {
  const bytes = started(11, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  driver.rule('cuCheckpointOperationComplete', 'once crash')
  const outcome = accelerator.swapOut(task)
  await vi.waitFor(() => expect(driver.notes.at(-1)).toBe(HELPER_ENDED), WAIT)
  driver.write('process-11', LOCKED)
  expect(await outcome).toBe('done')
  expect(isByDriver(11)).toBe(true)
  expect(records()).toEqual([])
  expect(await accelerator.swapIn(task)).toBe('done')
  expect(driver.contents(11).equals(bytes)).toBe(true)
})

test('A process whose bytes were not all copied is never restored from the arena', async () => {
  started(11, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  driver.rule('cuStreamQuery', 'once crash')
  const outcome = accelerator.swapOut(task)
  await vi.waitFor(() => expect(driver.notes.at(-1)).toBe(HELPER_ENDED), WAIT)
  driver.write('process-11', CHECKPOINTED)
  await outcome
  expect(await accelerator.swapIn(task)).toBe('copy_failed')
  expect(driver.notes.at(-1)).toMatch(/cannot be restored: the swap-out did not end$/)
  expect(driver.actions()).not.toContain('restore 11')
})

test('What a process leaves in the arena is cleared, after its swap-in and after its end', async () => {
  started(11, 3)
  started(12, 3)
  const accelerator = await opened()
  const task = stubTask([11])
  expect(await accelerator.swapOut(task)).toBe('done')
  expect(arenaBytes().some((byte) => byte !== 0)).toBe(true)
  expect(await accelerator.swapIn(task)).toBe('done')
  await untilCleared()
  expect(await accelerator.swapOut(stubTask([12]))).toBe('done')
  expect(arenaBytes().some((byte) => byte !== 0)).toBe(true)
  driver.end(12)
  await untilCleared()
  await vi.waitFor(() => expect(records()).toEqual([]), WAIT)
})

test('Pieces of a process that ends during its copy are not given to another', async () => {
  driver.gpu(1, { totalMib: 1000 })
  started(11, 10)
  driver.process(12, { mib: [0, 10] })
  driver.fill(12, bytesOf('b', 10 * MIB), 1)
  const accelerator = await opened()
  driver.rule('cuCheckpointOperationComplete-11', 'wait')
  const outcome = accelerator.swapOut(stubTask([11]))
  await vi.waitFor(() => expect(driver.calls()).toContain('complete 11'), WAIT)
  driver.end(11)
  const other = stubTask([12], { taskId: 'task-2', gpus: [1] })
  expect(await accelerator.swapOut(other)).toBe('done')
  expect(existsSync(join(driver.state, 'host-12-1'))).toBe(true)
  driver.withoutRule('cuCheckpointOperationComplete-11')
  expect(await outcome).toBe('copy_failed')
})

test('The bytes of an ended process are not those of a later one with its pid, and are cleared', async () => {
  started(11, 3)
  const before = await opened()
  expect(await before.swapOut(stubTask([11]))).toBe('done')
  await Promise.all(accelerators.splice(0).map((accelerator) => accelerator.close()))
  const bytes = started(11, 3, 'another process')
  const accelerator = await opened()
  await untilCleared()
  expect(records()).toEqual([])
  driver.write('process-11', LOCKED)
  expect(await accelerator.residencyOf(stubTask([11]))).toBe('resident')
  expect(driver.contents(11).equals(bytes)).toBe(true)
})

test('After a restart of the host no record counts', async () => {
  started(11, 3)
  const before = await opened()
  expect(await before.swapOut(stubTask([11]))).toBe('done')
  writeFileSync(join(driver.files.proc, 'sys/kernel/random/boot_id'), 'boot-2\n')
  await restarted()
  await vi.waitFor(() => expect(records()).toEqual([]), WAIT)
})

test.each([
  [
    'a damaged record',
    (record: string) => writeFileSync(record, readFileSync(record, 'utf8').replace('"bytes":3', '"bytes":2')),
    /is damaged$/,
  ],
  [
    'a record that is cut off',
    (record: string) => writeFileSync(record, readFileSync(record).subarray(0, -9)),
    /is damaged$/,
  ],
  ['a missing file', () => rmSync(place().file), /memory was removed or replaced$/],
  [
    'another file',
    () => writeFileSync(place().file, Buffer.alloc(3 * MIB), { mode: 0o600 }),
    /memory was removed or replaced$/,
  ],
  ['a file that is cut off', () => truncateSync(place().file, HEADER_BYTES + MIB), /memory was cut off$/],
])('With %s a swap-in is refused with the reason, and other tasks are swapped', async (_, damage, why) => {
  started(11, 3)
  const before = await opened()
  expect(await before.swapOut(stubTask([11]))).toBe('done')
  await Promise.all(accelerators.splice(0).map((accelerator) => accelerator.close()))
  damage(join(place().records, records()[0] ?? ''))
  const accelerator = await opened()
  const task = stubTask([11])
  expect(await accelerator.swapIn(task)).toBe('copy_failed')
  expect(driver.notes.at(-1)).toMatch(why)
  expect(driver.stateOf(11)).toBe('checkpointed')
  expect(driver.actions()).not.toContain('restore 11')
  const bytes = started(12, 3)
  const other = stubTask([12], { taskId: 'task-2' })
  expect(await accelerator.swapOut(other)).toBe('done')
  expect(await accelerator.swapIn(other)).toBe('done')
  expect(driver.contents(12).equals(bytes)).toBe(true)
})

test('Without an arena and records, its memory is given back', async () => {
  started(11, 3)
  const before = await opened()
  expect(await before.swapOut(stubTask([11]))).toBe('done')
  driver.end(11)
  await restarted({ arena: place(0) })
  await vi.waitFor(() => expect(existsSync(place().file)).toBe(false), WAIT)
})

test('A file that other users may read is not used', async () => {
  writeFileSync(place().file, '', { mode: 0o644 })
  started(11, 3)
  const accelerator = await opened()
  expect(await accelerator.swapOut(stubTask([11]))).toBe('done')
  expect(isByDriver(11)).toBe(true)
  expect(driver.notes.at(-1)).toMatch(/belongs to another user or is not private$/)
})

test('Two tasks on two GPUs are stored at the same time, each with its own bytes', async () => {
  driver.gpu(1, { totalMib: 1000 })
  driver.process(11, { mib: [3] })
  driver.process(12, { mib: [0, 4] })
  const [first, second] = [bytesOf('a', 3 * MIB), bytesOf('b', 4 * MIB)]
  driver.fill(11, first)
  driver.fill(12, second, 1)
  const accelerator = await opened()
  const tasks = [stubTask([11]), stubTask([12], { taskId: 'task-2', gpus: [1] })]
  expect(await Promise.all(tasks.map((task) => accelerator.swapOut(task)))).toEqual(['done', 'done'])
  expectStored(11, 12)
  expect(await Promise.all(tasks.map((task) => accelerator.swapIn(task)))).toEqual(['done', 'done'])
  expect(driver.contents(11).equals(first)).toBe(true)
  expect(driver.contents(12, 1).equals(second)).toBe(true)
})

test('A killed server leaves no helper behind that hangs in a copy', async () => {
  started(11, 3)
  driver.rule('cuMemcpyDtoHAsync_v2', 'hang')
  const args = [OWNER, driver.cudaLibrary, JSON.stringify(place()), driver.files.proc]
  const owner = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  owner.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  await vi.waitFor(() => expect(said).toMatch(/^\d+\n$/), WAIT)
  await vi.waitFor(() => expect(driver.calls().at(-1)).toMatch(/^copy out /), WAIT)
  owner.kill('SIGKILL')
  await vi.waitFor(() => expect(() => process.kill(Number(said), 0)).toThrow('ESRCH'), WAIT)
})

test('A program that uses its GPU all the time finds its data unchanged', async () => {
  const files = { proc: '/proc', cgroup: '/sys/fs/cgroup' }
  const accelerator = await opened({ files, arena: place(128) })
  const program = await CudaProgram.start({
    program: compile('fill', folder),
    cudaLibrary: driver.cudaLibrary,
    name: 'program',
    mib: 64,
    environment: accelerator.environment([0]),
  })
  try {
    expect(await accelerator.swapOut(program)).toBe('done')
    expect(records()).toHaveLength(1)
    const after = await restarted({ files, arena: place(128) })
    expect(await after.swapIn(program)).toBe('done')
    expect(await program.isIntact()).toBe(true)
  } finally {
    await program.end()
  }
})
