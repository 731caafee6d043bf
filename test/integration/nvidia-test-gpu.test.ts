import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { StubDriver } from '../support/nvidia-stubs/stub-driver.ts'

const MAIN = join(import.meta.dirname, '../gpu/main.ts')
let driver: StubDriver

beforeAll(() => {
  driver = new StubDriver()
})
beforeEach(() => {
  driver.reset()
  driver.gpu(0, { totalMib: 220, name: 'NVIDIA Stub' })
})
afterAll(() => driver.remove())

function testGpu(...args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], (error, stdout) =>
      resolve({ code: error === null ? 0 : Number(error.code), output: stdout }),
    )
  })
}

const onStub = (): readonly string[] => ['--nvml', driver.nvmlLibrary, '--cuda', driver.cudaLibrary]

test('make test-gpu on a stub driver: programs that exceed the GPU alternate', async () => {
  const { code, output } = await testGpu(...onStub())
  expect(output).toMatch(/^NVIDIA Stub, driver 570\.86\.15: 220 MiB, 220 MiB free, 220 MiB used for swaps\n/)
  expect(output).toContain('ok: NVML sees 122 MiB freed by the swap-out of 121 MiB\n')
  expect(output).toContain('ok: the programs need 242 MiB together\n')
  expect(output).toMatch(/ok: swap-in of a \(121 MiB\): no_vram in \d+ ms\n/)
  expect(output).toContain('ok: b finds its data unchanged\n')
  expect(output).toMatch(/\npassed\n$/)
  expect(code).toBe(0)
}, 120_000)

test('Data that differs after a swap-in is a failure', async () => {
  driver.rule('cuMemcpyDtoH_v2', 'code 0')
  const { code, output } = await testGpu(...onStub())
  expect(output).toMatch(/\nFAILED: does not hold: a finds its data unchanged\n$/)
  expect(code).toBe(1)
}, 120_000)

test.skipIf(existsSync('/dev/nvidiactl'))('A host without a GPU skips the test', async () => {
  expect(await testGpu('--nvml', '/nowhere/libnvidia-ml.so.1')).toEqual({
    code: 0,
    output: 'skipped: no NVIDIA GPU\n',
  })
})
