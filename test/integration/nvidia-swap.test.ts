import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { HOST_MARGIN_MIB, RESTORE_MARGIN_MIB } from '../../gpu-server/devices/nvidia/swaps.ts'
import type { NvidiaAccelerator, NvidiaOptions } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { stubTask, StubDriver } from '../support/nvidia-stubs/stub-driver.ts'

let driver: StubDriver
const accelerators: NvidiaAccelerator[] = []

/** Shared by all tests that do not affect its helpers. */
let common: NvidiaAccelerator

beforeAll(async () => {
  driver = new StubDriver()
  common = driver.accelerator()
  await common.open()
  expect(await common.whyNotSwappable(stubTask([]))).toBe(null)
})
beforeEach(() => driver.reset())
afterEach(async () => {
  await Promise.all(accelerators.splice(0).map((accelerator) => accelerator.close()))
})
afterAll(async () => {
  await common.close()
  driver.remove()
})

async function opened(options: NvidiaOptions = {}): Promise<NvidiaAccelerator> {
  const accelerator = driver.accelerator(options)
  accelerators.push(accelerator)
  await accelerator.open()
  return accelerator
}

const CUDA_MAP =
  '7f0000000000-7f0000001000 r-xp 00000000 00:00 0 /usr/lib/x86_64-linux-gnu/libcuda.so.570.86.15'
const NCCL_MAP = '7f1000000000-7f1000001000 r-xp 00000000 00:00 0 /opt/venv/lib/libnccl.so.2'

/** Waits until the condition holds; otherwise the test fails by its time limit. */
const until = (fact: () => void): Promise<void> => vi.waitFor(fact, { timeout: 90_000, interval: 20 })

test('A swap-out frees the memory on the GPU, and a swap-in allocates it again', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = common
  expect(await open.whyNotSwappable(task)).toBe(null)
  expect(await open.swapOut(task)).toBe('done')
  expect((await open.sample([task])).freeMib).toEqual([1000])
  expect(await open.residencyOf(task)).toBe('swapped_out')
  expect(await open.swapIn(task)).toBe('done')
  expect((await open.sample([task])).freeMib).toEqual([700])
  expect(await open.residencyOf(task)).toBe('resident')
  expect(driver.actions()).toEqual(['lock 11', 'checkpoint 11', 'restore 11', 'unlock 11'])
  expect(driver.stateOf(11)).toBe('running')
  expect(task.signals).toEqual(['suspend', 'resume'])
})

test('All actions use one helper, which attaches to the driver once', async () => {
  driver.process(11, { mib: [300] })
  driver.process(12, { mib: [200] })
  const open = await opened()
  for (const task of [stubTask([11]), stubTask([12])]) {
    expect(await open.swapOut(task)).toBe('done')
    expect(await open.swapIn(task)).toBe('done')
  }
  expect(driver.calls().filter((call) => call === 'cuInit')).toHaveLength(1)
})

test('Processes of a task without CUDA are not touched', async () => {
  driver.kernelProcess(10, { maps: '' })
  driver.kernelProcess(12, { maps: CUDA_MAP })
  driver.process(11, { mib: [300] })
  const open = common
  expect(await open.swapOut(stubTask([10, 11, 12]))).toBe('done')
  expect(driver.calls()).not.toContain('thread 10')
  expect(driver.actions()).toEqual(['lock 11', 'checkpoint 11'])
})

test('A task without GPU memory is stopped by signals, so that it allocates none meanwhile', async () => {
  driver.kernelProcess(10, { maps: '' })
  const task = stubTask([10])
  const open = common
  expect(await open.swapOut(task)).toBe('done')
  expect(task.signals).toEqual(['suspend'])
  expect(await open.swapIn(task)).toBe('done')
  expect(task.signals).toEqual(['suspend', 'resume'])
  expect(driver.actions()).toEqual([])
})

test('A task that allocated memory before the signal continues', async () => {
  driver.kernelProcess(10, { maps: '' })
  const task = stubTask([10])
  const suspend = task.suspend.bind(task)
  const open = common
  task.suspend = () => {
    driver.process(10, { mib: [100] })
    return suspend()
  }
  expect(await open.swapOut(task)).toBe('woke_while_locked')
  expect(task.signals).toEqual(['suspend', 'resume'])
})

test('A process that cannot be locked in time stays resident', async () => {
  driver.process(11, { mib: [300] })
  driver.rule('cuCheckpointProcessLock-11', 'code 600')
  const open = common
  expect(await open.swapOut(stubTask([11]))).toBe('woke_while_locked')
  expect(driver.stateOf(11)).toBe('running')
  expect(driver.notes).toContain(
    'task task-1 attempt 1: cuCheckpointProcessLock: not ready in time (CUDA_ERROR_NOT_READY)',
  )
})

test.each([
  [2, 'no_host_memory', 'out of memory (CUDA_ERROR_OUT_OF_MEMORY)'],
  [401, 'copy_failed', 'the process is in another state (CUDA_ERROR_ILLEGAL_STATE)'],
  [801, 'copy_failed', 'not supported by this driver or GPU (CUDA_ERROR_NOT_SUPPORTED)'],
  [12345, 'copy_failed', 'the driver answered with code 12345'],
])('A copy that fails with %i lets the process continue', async (code, outcome, words) => {
  driver.process(11, { mib: [300] })
  driver.rule('cuCheckpointProcessCheckpoint', `code ${code}`)
  const open = common
  expect(await open.swapOut(stubTask([11]))).toBe(outcome)
  expect(driver.actions()).toEqual(['lock 11', 'checkpoint 11', 'unlock 11'])
  expect(driver.stateOf(11)).toBe('running')
  expect(driver.notes.at(-1)).toBe(`task task-1 attempt 1: cuCheckpointProcessCheckpoint: ${words}`)
})

test('An operation that the driver does not support is not tried again', async () => {
  driver.process(11, { mib: [300] })
  driver.rule('cuCheckpointProcessCheckpoint', 'code 801')
  const task = stubTask([11])
  expect(await common.swapOut(task)).toBe('copy_failed')
  driver.withoutRule('cuCheckpointProcessCheckpoint')
  const why = 'cuCheckpointProcessCheckpoint: not supported by this driver or GPU (CUDA_ERROR_NOT_SUPPORTED)'
  expect(await common.whyNotSwappable(task)).toBe(why)
  expect(await common.swapOut(task)).toBe('copy_failed')
  expect(driver.actions()).toEqual(['lock 11', 'checkpoint 11', 'unlock 11'])
})

test('With too little host memory, no process is touched', async () => {
  driver.process(11, { mib: [300] })
  driver.hostMemory(300 + HOST_MARGIN_MIB - 1)
  const open = common
  expect(await open.swapOut(stubTask([11]))).toBe('no_host_memory')
  expect(driver.actions()).toEqual([])
  driver.hostMemory(300 + HOST_MARGIN_MIB)
  expect(await open.swapOut(stubTask([11]))).toBe('done')
})

test("The limit of the task's own cgroup counts", async () => {
  driver.process(11, { mib: [300], proc: { maps: CUDA_MAP, cgroup: '0::/tasks/one\n' } })
  mkdirSync(join(driver.files.cgroup, 'tasks/one'), { recursive: true })
  writeFileSync(join(driver.files.cgroup, 'tasks/memory.max'), `${600 * 1024 * 1024}\n`)
  writeFileSync(join(driver.files.cgroup, 'tasks/memory.current'), `${100 * 1024 * 1024}\n`)
  const open = common
  expect(await open.swapOut(stubTask([11]))).toBe('no_host_memory')
})

test('Free VRAM is checked right before a restore; a process that does not fit stays out', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = common
  await open.swapOut(task)
  driver.process(99, { mib: [700 - RESTORE_MARGIN_MIB + 1] })
  expect(await open.swapIn(task)).toBe('no_vram')
  expect(driver.actions()).not.toContain('restore 11')
  expect(driver.stateOf(11)).toBe('checkpointed')
  driver.process(99, { mib: [700 - RESTORE_MARGIN_MIB] })
  expect(await open.swapIn(task)).toBe('done')
})

test('No process is restored while the driver does not report free memory', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = common
  await open.swapOut(task)
  driver.rule('nvmlDeviceGetMemoryInfo_v2', 'code 999')
  driver.rule('nvmlDeviceGetMemoryInfo', 'code 999')
  expect(await open.swapIn(task)).toBe('no_vram')
})

test('Two swap-ins that fit only one by one do not both begin', async () => {
  driver.process(11, { mib: [600] })
  const [first, second] = [stubTask([11]), stubTask([12], { taskId: 'task-2' })]
  const open = common
  await open.swapOut(first)
  driver.process(12, { mib: [600] })
  await open.swapOut(second)
  driver.rule('cuCheckpointProcessRestore-11', 'wait')
  const outcomes = Promise.all([open.swapIn(first), open.swapIn(second)])
  await until(() => expect(driver.actions()).toContain('restore 11'))
  driver.withoutRule('cuCheckpointProcessRestore-11')
  expect(await outcomes).toEqual(['done', 'no_vram'])
})

test('Swaps on two GPUs run at the same time', async () => {
  driver.gpu(1, { totalMib: 1000 })
  driver.process(11, { mib: [300, 0] })
  driver.process(12, { mib: [0, 300] })
  const open = common
  driver.rule('cuCheckpointProcessCheckpoint-11', 'wait')
  const slow = open.swapOut(stubTask([11], { gpus: [0] }))
  await until(() => expect(driver.actions()).toContain('checkpoint 11'))
  expect(await open.swapOut(stubTask([12], { gpus: [1] }))).toBe('done')
  driver.withoutRule('cuCheckpointProcessCheckpoint-11')
  expect(await slow).toBe('done')
})

test('A restore that runs out of memory ends the process, and is not tried again', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = common
  await open.swapOut(task)
  driver.rule('cuCheckpointProcessRestore', 'code 2')
  expect(await open.swapIn(task)).toBe('copy_failed')
  expect(driver.notes).toContain(
    'task task-1 attempt 1: process 11 is lost: the GPU ran out of memory while it was restored',
  )
  driver.withoutRule('cuCheckpointProcessRestore')
  expect(await open.swapIn(task)).toBe('copy_failed')
  expect(driver.actions().filter((call) => call === 'restore 11')).toHaveLength(1)
})

test('A stopped process is not locked, because its thread could not answer', async () => {
  driver.process(11, { mib: [300], proc: { maps: CUDA_MAP, isStopped: true } })
  const open = common
  expect(await open.swapOut(stubTask([11]))).toBe('copy_failed')
  expect(driver.actions()).toEqual([])
  expect(driver.notes.at(-1)).toContain('process 11 is stopped')
})

test.each(['lock', 'checkpoint'] as const)(
  'A helper that crashes at %s is replaced, and the process state is read again',
  async (action) => {
    driver.process(11, { mib: [300] })
    driver.rule(`cuCheckpointProcess${action === 'lock' ? 'Lock' : 'Checkpoint'}`, 'crash')
    const open = await opened()
    expect(await open.swapOut(stubTask([11]))).toBe('copy_failed')
    expect(driver.stateOf(11)).toBe('running')
    expect(driver.notes).toContain('NVIDIA cuda helper: it ended with SIGABRT')
    expect(driver.calls().filter((call) => call === 'cuInit')).toHaveLength(2)
  },
)

test('An action that took effect before the helper was lost counts', async () => {
  driver.process(11, { mib: [300] })
  const open = await opened()
  driver.rule('cuCheckpointProcessCheckpoint', 'wait')
  const outcome = open.swapOut(stubTask([11]))
  await until(() => expect(driver.actions()).toContain('checkpoint 11'))
  driver.process(11, { mib: [300], state: 'checkpointed' })
  driver.rule('cuCheckpointProcessCheckpoint', 'crash')
  expect(await outcome).toBe('done')
})

test('A copy that hangs is given up after a timeout', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = await opened({ checkpointTimeouts: { actionMs: 300, slowestMibPerS: 1_000_000 } })
  expect(await open.whyNotSwappable(task)).toBe(null)
  driver.rule('cuCheckpointProcessCheckpoint', 'hang')
  expect(await open.swapOut(task)).toBe('copy_failed')
  expect(driver.stateOf(11)).toBe('running')
})

test('A process that the driver is still copying is awaited', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = await opened()
  driver.rule('cuCheckpointProcessCheckpoint', 'wait')
  const outcome = open.swapOut(task)
  await until(() => expect(driver.actions()).toContain('checkpoint 11'))
  const asked = driver.calls().filter((call) => call === 'state 11').length
  driver.process(11, { mib: [300], state: 'checkpointing' })
  driver.rule('cuCheckpointProcessCheckpoint', 'crash')
  await until(() =>
    expect(driver.calls().filter((call) => call === 'state 11').length).toBeGreaterThan(asked),
  )
  driver.process(11, { mib: [300], state: 'checkpointed' })
  expect(await outcome).toBe('done')
})

test('A process that the driver lost during a copy is reported', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = common
  driver.rule('cuCheckpointProcessCheckpoint', 'wait')
  const outcome = open.swapOut(task)
  await until(() => expect(driver.actions()).toContain('checkpoint 11'))
  driver.process(11, { mib: [300], state: 'failed' })
  driver.rule('cuCheckpointProcessCheckpoint', 'code 999')
  expect(await outcome).toBe('copy_failed')
  expect(driver.notes.at(-1)).toBe(
    'task task-1 attempt 1: process 11 is lost: the driver failed while it copied',
  )
  expect(await open.whyNotSwappable(task)).toBe('process 11 is lost: the driver failed while it copied')
})

test('After a restart the state of each process is read, and a locked process is unlocked', async () => {
  driver.process(11, { mib: [100] })
  driver.process(12, { mib: [100], state: 'checkpointed' })
  driver.process(13, { mib: [100], state: 'locked' })
  driver.process(14, { mib: [100], state: 'failed' })
  driver.kernelProcess(15, { isStopped: true })
  driver.kernelProcess(16, {})
  const open = common
  const tasks = [11, 12, 13, 14, 15, 16].map((pid) => stubTask([pid], { taskId: `task-${pid}` }))
  const residencies = await Promise.all([...tasks, stubTask([])].map((task) => open.residencyOf(task)))
  expect(residencies).toEqual([
    'resident',
    'swapped_out',
    'resident',
    'unknown',
    'swapped_out',
    'resident',
    'unknown',
  ])
  expect(driver.stateOf(13)).toBe('running')
  expect(await Promise.all(tasks.slice(1, 2).map((task) => open.swapIn(task)))).toEqual(['done'])
  expect(driver.stateOf(12)).toBe('running')
})

test("A task's residency is unknown while the driver does not answer", async () => {
  driver.process(12, { mib: [100], state: 'checkpointed' })
  const open = await opened({ cudaLibrary: '/nowhere/libcuda.so.1' })
  expect(await open.residencyOf(stubTask([12]))).toBe('unknown')
})

test('After a restart, a restore needs the granted VRAM', async () => {
  driver.process(12, { mib: [100], state: 'checkpointed' })
  driver.process(99, { mib: [700] })
  const open = common
  expect(await open.swapIn(stubTask([12], { vramMib: 400 }))).toBe('no_vram')
  expect(await open.swapIn(stubTask([12], { vramMib: 200 }))).toBe('done')
})

test('A task that cannot be swapped is refused with the reason, without being touched', async () => {
  driver.gpu(1, { totalMib: 1000, mig: 1 })
  driver.process(11, { mib: [100] })
  driver.process(12, { mib: [100] })
  driver.process(13, { mib: [100, 100], proc: { maps: `${CUDA_MAP}\n${NCCL_MAP}` } })
  driver.process(14, {
    mib: [100],
    proc: { maps: `${CUDA_MAP}\n200000000000-200008000000 rw-s 00000000 00:06 1 /dev/nvidia-uvm` },
  })
  driver.process(15, { mib: [100] })
  driver.rule('cuCheckpointProcessGetRestoreThreadId-15', 'code 304')
  const cases = [
    [stubTask([11, 12]), '2 processes use GPUs (11, 12); memory that they share cannot be checkpointed'],
    [stubTask([11, 13]), '2 processes use GPUs with NCCL (11, 13), which the driver cannot checkpoint'],
    [stubTask([11], { gpus: [1] }), 'GPU 1 is in MIG mode, which the driver cannot checkpoint'],
    [stubTask([14]), 'process 14 has 128 MiB of managed memory (UVM), which the driver cannot checkpoint'],
    [
      stubTask([15]),
      'process 15: cuCheckpointProcessGetRestoreThreadId: a call of the operating system failed ' +
        '(CUDA_ERROR_OPERATING_SYSTEM)',
    ],
  ] as const
  const open = common
  for (const [task, why] of cases) {
    expect(await open.whyNotSwappable(task)).toBe(why)
    expect(await open.swapOut(task)).toBe('copy_failed')
    expect(driver.notes.at(-1)).toBe(`task task-1 attempt 1: ${why}`)
  }
  expect(driver.actions()).toEqual([])
  driver.gpu(1, { totalMib: 1000 })
  expect(await open.whyNotSwappable(stubTask([13], { gpus: [0, 1] }))).toBe(
    'process 13 uses 2 GPUs with NCCL, which the driver cannot checkpoint',
  )
  expect(await open.whyNotSwappable(stubTask([13]))).toBe(null)
})

test('A driver without the checkpoint API is reported, and no helper is started', async () => {
  driver.write('driver', '560.35.03')
  driver.process(11, { mib: [100] })
  const open = await opened()
  expect(await open.whyNotSwappable(stubTask([11]))).toBe(
    'driver 560.35.03 is older than 570, the first with the checkpoint API',
  )
  expect(driver.calls()).not.toContain('cuInit')
})

test('A libcuda that is missing or lacks the functions is named in the reason', async () => {
  const old = await opened({ cudaLibrary: driver.compile('cuda.c', 'old-cuda.so', '-DOLD_CUDA') })
  expect(await old.whyNotSwappable(stubTask([11]))).toMatch(
    /old-cuda\.so has no cuCheckpointProcessGetState: the driver is too old$/,
  )
  const none = await opened({ cudaLibrary: '/nowhere/libcuda.so.1' })
  expect(await none.whyNotSwappable(stubTask([11]))).toMatch(/^\/nowhere\/libcuda\.so\.1 cannot be loaded: /)
})

test('Closing ends the helpers, also one that hangs', async () => {
  driver.process(11, { mib: [300] })
  driver.rule('cuCheckpointProcessLock', 'hang')
  const open = await opened()
  const outcome = open.swapOut(stubTask([11]))
  await until(() => expect(driver.actions()).toContain('lock 11'))
  await open.close()
  expect(await outcome).toBe('copy_failed')
})

test('A killed server leaves no helper behind, not even one that hangs in the driver', async () => {
  driver.process(11, { mib: [300] })
  driver.rule('cuCheckpointProcessLock', 'hang')
  const owner = spawn(
    process.execPath,
    [join(import.meta.dirname, '../support/nvidia-stubs/helper-owner.ts'), driver.cudaLibrary],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let said = ''
  owner.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  await until(() => expect(said).toMatch(/^\d+\n$/))
  await until(() => expect(driver.actions()).toContain('lock 11'))
  owner.kill('SIGKILL')
  await until(() => expect(() => process.kill(Number(said), 0)).toThrow('ESRCH'))
})
