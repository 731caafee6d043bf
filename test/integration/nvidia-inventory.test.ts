import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AcceleratorFault } from '../../gpu-server/devices/accelerator.ts'
import { HelperProcess } from '../../gpu-server/devices/nvidia/helper-process.ts'
import type { NvidiaAccelerator, NvidiaOptions } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { stubTask, StubDriver, STUB_UUID } from '../support/nvidia-stubs/stub-driver.ts'

let driver: StubDriver
let accelerator: NvidiaAccelerator | null = null

beforeAll(() => {
  driver = new StubDriver()
})
beforeEach(() => driver.reset())
afterEach(async () => {
  await accelerator?.close()
  accelerator = null
})
afterAll(() => driver.remove())

async function opened(options: NvidiaOptions = {}): Promise<NvidiaAccelerator> {
  accelerator = driver.accelerator(options)
  await accelerator.open()
  return accelerator
}

test('The inventory has the usable GPUs of the driver, in index order', async () => {
  driver.gpu(0, { totalMib: 81_559, reservedMib: 551, name: 'NVIDIA H100 80GB HBM3' })
  driver.gpu(1, { totalMib: 24_000, name: 'NVIDIA L4' })
  const { gpus, environment } = await opened().then((open) => ({
    gpus: open.gpus(),
    environment: open.environment([1, 0]),
  }))
  expect(gpus).toEqual([
    { index: 0, model: 'NVIDIA H100 80GB HBM3', physical_mib: 81_008, foreign_mib: 0 },
    { index: 1, model: 'NVIDIA L4', physical_mib: 24_000, foreign_mib: 0 },
  ])
  expect(environment).toEqual({
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
    CUDA_VISIBLE_DEVICES: `${STUB_UUID(1)},${STUB_UUID(0)}`,
  })
})

test('An engine gets the UUIDs of the GPUs of a placement, and none for a GPU without one', async () => {
  driver.gpu(0, { totalMib: 24_000 })
  driver.gpu(1, { totalMib: 24_000 })
  const open = await opened()
  expect(open.containerDevices([1])).toEqual([STUB_UUID(1)])
  expect(open.containerDevices([])).toEqual([])
  expect(() => open.containerDevices([0, 2])).toThrow('the UUID of GPU 2 is not known')
})

test('A task without GPUs sees no GPU', async () => {
  expect((await opened()).environment([])['CUDA_VISIBLE_DEVICES']).toBe('')
})

test('Memory is attributed to tasks, and the rest is foreign', async () => {
  driver.gpu(1, { totalMib: 2000 })
  driver.process(11, { mib: [300, 50] })
  driver.process(12, { mib: [40] })
  driver.process(13, { mib: [7], kind: 'g' })
  driver.process(14, { mib: [0, 20], kind: 'm' })
  const task = stubTask([11], { gpus: [0, 1] })
  const open = await opened()
  const { uses, freeMib } = await open.sample([task])
  expect(uses.get(task)?.usedMib).toEqual([300, 50])
  expect(freeMib).toEqual([653, 1930])
  expect(open.gpus().map(({ foreign_mib }) => foreign_mib)).toEqual([47, 20])
})

test('An NVML library without version 2 of its structures also works', async () => {
  driver.gpu(0, { totalMib: 1000, reservedMib: 100 })
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = await opened({ nvmlLibrary: driver.compile('nvml.c', 'old-nvml.so', '-DOLD_NVML') })
  const { uses, freeMib } = await open.sample([task])
  expect(open.gpus()[0]?.physical_mib).toBe(1000)
  expect(freeMib).toEqual([600])
  expect(uses.get(task)).toEqual({ usedMib: [300], isBusy: false })
})

test('Processes that ran a kernel are known if the GPU reports them', async () => {
  driver.process(11, { mib: [100], utilization: 35 })
  driver.process(12, { mib: [100] })
  const [busy, idle] = [stubTask([11]), stubTask([12])]
  const { uses } = await (await opened()).sample([busy, idle])
  expect([uses.get(busy)?.isBusy, uses.get(idle)?.isBusy]).toEqual([true, false])
})

test('Otherwise the utilization of the whole GPU counts for a task that is alone on it', async () => {
  driver.rule('nvmlDeviceGetProcessUtilization', 'code 3')
  driver.gpu(0, { totalMib: 1000, utilization: 80 })
  driver.process(11, { mib: [100] })
  const task = stubTask([11])
  const other = stubTask([12])
  const open = await opened()
  expect((await open.sample([task, other])).uses.get(task)?.isBusy).toBe(true)
  driver.process(12, { mib: [100] })
  expect((await open.sample([task, other])).uses.get(task)?.isBusy).toBe(null)
  driver.gpu(0, { totalMib: 1000, utilization: 0 })
  expect((await open.sample([task, other])).uses.get(task)?.isBusy).toBe(false)
})

test('More processes than expected are read into a larger list', async () => {
  for (let pid = 1000; pid < 1300; pid++) driver.process(pid, { mib: [1] })
  const open = await opened()
  await open.sample([])
  expect(open.gpus()[0]?.foreign_mib).toBe(300)
})

test('A GPU that has fallen off the bus has no memory, and the others continue', async () => {
  driver.gpu(1, { totalMib: 2000 })
  const open = await opened()
  driver.rule('nvmlDeviceGetMemoryInfo_v2-0', 'code 15')
  driver.rule('nvmlDeviceGetMemoryInfo-0', 'code 15')
  const { freeMib } = await open.sample([])
  expect(freeMib).toEqual([null, 2000])
  expect(open.gpus().map(({ physical_mib }) => physical_mib)).toEqual([0, 2000])
})

test('A GPU that cannot be opened keeps its index', async () => {
  driver.gpu(1, { totalMib: 2000 })
  driver.rule('nvmlDeviceGetHandleByIndex_v2-0', 'code 17')
  const open = await opened()
  expect(open.gpus().map(({ index, physical_mib }) => [index, physical_mib])).toEqual([
    [0, 0],
    [1, 2000],
  ])
  expect(driver.notes).toContain(
    'GPU 0: nvmlDeviceGetHandleByIndex_v2: the operating system or a cgroup blocks the GPU ' +
      '(NVML_ERROR_OPERATING_SYSTEM)',
  )
})

test('Processes that have just ended are not foreign while the driver still lists them', async () => {
  driver.process(11, { mib: [300] })
  const task = stubTask([11])
  const open = await opened()
  await open.sample([task])
  driver.end(11)
  driver.process(11, { mib: [300], proc: null })
  await open.sample([stubTask([])])
  expect(open.gpus()[0]?.foreign_mib).toBe(0)
})

test('A driver that is not loaded is reported in words', async () => {
  driver.rule('nvmlInit_v2', 'code 9')
  const failure: unknown = await opened().catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(AcceleratorFault)
  expect(String(failure)).toBe(
    'AcceleratorFault: no NVIDIA GPU can be read: nvmlInit_v2: the NVIDIA driver is not loaded ' +
      '(NVML_ERROR_DRIVER_NOT_LOADED)',
  )
})

test('Every NVML error has a name and words, and an unknown one has its number', async () => {
  const helper = new HelperProcess({
    role: 'nvml',
    library: driver.nvmlLibrary,
    ffiModule: 'koffi',
    onNote: () => {},
  })
  const told: string[] = []
  for (const code of [...Array.from({ length: 30 }, (_, before) => before + 1), 999, 31]) {
    driver.rule('nvmlInit_v2', `code ${code}`)
    told.push(await helper.request('snapshot', {}, 10_000).then(String, String))
  }
  await helper.close()
  expect(told.pop()).toBe('HelperFault: nvmlInit_v2: NVML answered with the unknown code 31')
  expect(new Set(told).size).toBe(31)
  for (const line of told) expect(line).toMatch(/^HelperFault: nvmlInit_v2: [^\n]+ \(NVML_ERROR_[A-Z_]+\)$/)
})

test('A driver that hangs is given up after a timeout, and read again when it answers', async () => {
  const open = await opened()
  driver.rule('nvmlDeviceGetMemoryInfo_v2', 'hang')
  const task = stubTask([11])
  const hung = driver.accelerator({ snapshotMs: 200 })
  await expect(hung.open()).rejects.toThrow(
    'no NVIDIA GPU can be read: nvml helper: snapshot not answered within 200 ms',
  )
  driver.withoutRule('nvmlDeviceGetMemoryInfo_v2')
  expect((await open.sample([task])).freeMib).toEqual([1000])
})

test('A driver that crashes ends its helper, and the next sample starts another helper', async () => {
  const open = await opened()
  driver.rule('nvmlDeviceGetMemoryInfo_v2', 'crash')
  const task = stubTask([11], { gpus: [0] })
  const crashed = await open.sample([task])
  expect(crashed.freeMib).toEqual([null])
  expect(crashed.uses.get(task)).toEqual({ usedMib: [null], isBusy: null })
  expect(open.gpus()[0]?.physical_mib).toBe(1000)
  driver.withoutRule('nvmlDeviceGetMemoryInfo_v2')
  expect((await open.sample([task])).freeMib).toEqual([1000])
  expect(driver.notes).toContain('NVIDIA nvml helper: it ended with SIGABRT')
})

test('A missing koffi and a missing nvidia-smi are reported in one line', async () => {
  const failure = await opened({
    ffiModule: 'koffi-that-is-not-installed',
    smiProgram: '/nowhere/nvidia-smi',
  }).catch(String)
  expect(failure).toMatch(
    new RegExp(
      /^AcceleratorFault: no NVIDIA GPU can be read: koffi does not load: /.source +
        /.*koffi-that-is-not-installed.*; and \/nowhere\/nvidia-smi not found$/.source,
    ),
  )
})

test('A missing NVML library is named in one line', async () => {
  await expect(opened({ nvmlLibrary: '/nowhere/libnvidia-ml.so.1' })).rejects.toThrow(
    /^no NVIDIA GPU can be read: \/nowhere\/libnvidia-ml\.so\.1 cannot be loaded: .*; and .* not found/,
  )
})

test('Without koffi, nvidia-smi is read, and swaps are not possible', async () => {
  const smiProgram = join(driver.folder, 'nvidia-smi')
  writeFileSync(
    smiProgram,
    `#!/bin/sh
case "$1" in
  --query-gpu=*) echo "0, ${STUB_UUID(0)}, 1000, 10, 690, 0, [N/A], 570.86.15, NVIDIA Stub" ;;
  *) echo "11, ${STUB_UUID(0)}, 300" ;;
esac
`,
  )
  chmodSync(smiProgram, 0o755)
  const open = await opened({ ffiModule: 'koffi-that-is-not-installed', smiProgram })
  driver.kernelProcess(11, {})
  const task = stubTask([11])
  const { uses, freeMib } = await open.sample([task])
  expect(open.gpus()).toEqual([{ index: 0, model: 'NVIDIA Stub', physical_mib: 990, foreign_mib: 0 }])
  expect(freeMib).toEqual([690])
  expect(uses.get(task)?.usedMib).toEqual([300])
  expect(await open.whyNotSwappable(task)).toMatch(/^koffi does not load: /)
  expect(await open.swapOut(task)).toBe('copy_failed')
})

test('An nvidia-smi that does not support newer fields is called without them', async () => {
  const smiProgram = join(driver.folder, 'old-nvidia-smi')
  writeFileSync(
    smiProgram,
    `#!/bin/sh
case "$1" in
  *memory.reserved*) echo 'Field "memory.reserved" is not a valid field to query.'; exit 2 ;;
  --query-gpu=*) echo "0, ${STUB_UUID(0)}, 1000, P0, 690, 0, P0, 450.80.02, NVIDIA Stub" ;;
esac
`,
  )
  chmodSync(smiProgram, 0o755)
  const open = await opened({ nvmlLibrary: '/nowhere/libnvidia-ml.so.1', smiProgram })
  expect(open.gpus()).toEqual([{ index: 0, model: 'NVIDIA Stub', physical_mib: 1000, foreign_mib: 0 }])
})

test('A host whose driver lists no GPU is reported', async () => {
  driver.rule('nvmlDeviceGetCount_v2', 'code 28')
  await expect(opened()).rejects.toThrow('nvmlDeviceGetCount_v2: no GPU was found (NVML_ERROR_GPU_NOT_FOUND)')
})
