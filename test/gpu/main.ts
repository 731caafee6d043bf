/**
 * `make test-gpu`: swaps of real CUDA processes on a real GPU. Two programs that together need more memory than GPU 0 has take turns on it; NVML sees each
 * swap-out, and every program finds its bytes as they were. Then the cost of swaps, in the form of the simulator's profiles.
 * Without an NVIDIA GPU it says so and succeeds. Options name other libraries: --nvml PATH --cuda PATH.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { AcceleratorFault } from '../../gpu-server/devices/accelerator.ts'
import { NvidiaAccelerator } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { hostMemoryLeft } from '../../gpu-server/devices/nvidia/host-memory.ts'
import { fitProfile, type TimedSwap } from './calibration.ts'
import { compileFill, CudaProgram } from './cuda-program.ts'

/** Of the room on the GPU: two of the large size do not fit together. */
const LARGE_PERCENT = 55
const SMALL_PERCENT = 5
/** Both are in host memory for a moment, so that the room is no more than this share of it; a third program that stays takes the rest of the GPU. */
const HOST_PERCENT = 80
const ROUNDS = 3
/** A program that was killed gives its memory back a moment later. */
const RELEASE_DEADLINE_MS = 30_000
const RELEASE_POLL_MS = 200

const { values: options } = parseArgs({ options: { nvml: { type: 'string' }, cuda: { type: 'string' } } })
const cudaLibrary = options.cuda ?? 'libcuda.so.1'
const folder = mkdtempSync(join(tmpdir(), 'headroom-test-gpu-'))
const programs: CudaProgram[] = []
const accelerator = new NvidiaAccelerator({
  cudaLibrary,
  ...(options.nvml === undefined ? {} : { nvmlLibrary: options.nvml }),
  onNote: (line) => say(`note: ${line}`),
})

try {
  if (await isThere()) await run()
  else say('skipped: no NVIDIA GPU')
} catch (error) {
  say(`FAILED: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
} finally {
  await Promise.all(programs.map((program) => program.end()))
  await accelerator.close()
  rmSync(folder, { recursive: true })
}

/** A GPU whose driver does not work is a failure; no device of the driver's at all is none. */
async function isThere(): Promise<boolean> {
  try {
    await accelerator.open()
    return true
  } catch (fault) {
    if (fault instanceof AcceleratorFault && !existsSync('/dev/nvidiactl')) return false
    throw fault
  }
}

async function run(): Promise<void> {
  const program = compileFill(folder)
  const start = async (name: string, mib: number): Promise<CudaProgram> => {
    const started = await CudaProgram.start({ program, cudaLibrary, name, mib, environment: accelerator.environment([0]) })
    programs.push(started)
    return started
  }
  const [gpu] = accelerator.gpus()
  const freeAtFirst = await freeMib()
  const room = Math.min(freeAtFirst, percent(hostMemoryLeft({ proc: '/proc', cgroup: '/sys/fs/cgroup' }, process.pid) ?? 0, HOST_PERCENT))
  say(`${gpu?.model}, driver ${accelerator.driver}: ${gpu?.physical_mib} MiB, ${freeAtFirst} MiB free, ${room} MiB used for swaps`)
  if (room < freeAtFirst) await start('ballast', freeAtFirst - room)

  const a = await start('a', percent(room, LARGE_PERCENT))
  const why = await accelerator.whyNotSwappable(a)
  if (why !== null) throw new Error(`it cannot be swapped: ${why}`)
  const beforeOut = await freeMib()
  await expectOutcome('out', a, 'done')
  const freed = (await freeMib()) - beforeOut
  expect(freed >= a.vramMib, `NVML sees ${freed} MiB freed by the swap-out of ${a.vramMib} MiB`)
  expect((await accelerator.residencyOf(a)) === 'swapped_out', 'the driver says that a is swapped out')

  const b = await start('b', percent(room, LARGE_PERCENT))
  const together = programs.reduce((mib, { vramMib }) => mib + vramMib, 0)
  expect(together > freeAtFirst, `the programs need ${together} MiB together`)
  await expectOutcome('in', a, 'no_vram')
  await expectOutcome('out', b, 'done')
  await expectOutcome('in', a, 'done')
  expect(await a.isIntact(), 'a finds its bytes as they were')
  await expectOutcome('out', a, 'done')
  await expectOutcome('in', b, 'done')
  expect(await b.isIntact(), 'b finds its bytes as they were')
  await b.end()
  await untilFree(percent(room, LARGE_PERCENT + 2 * SMALL_PERCENT))

  await calibrate([a, await start('small', percent(room, SMALL_PERCENT))])
  say('passed')
}

async function calibrate([large, small]: readonly [CudaProgram, CudaProgram]): Promise<void> {
  await expectOutcome('in', large, 'done')
  const swaps: TimedSwap[] = []
  for (let round = 0; round < ROUNDS; round++) {
    for (const program of [small, large]) {
      for (const direction of ['out', 'in'] as const) {
        const ms = await expectOutcome(direction, program, 'done')
        swaps.push({ direction, mib: program.vramMib, ms })
      }
    }
  }
  for (const program of [small, large])
    expect(await program.isIntact(), `${program.taskId} finds its bytes as they were after ${ROUNDS} swaps`)
  const profile = fitProfile(swaps)
  if (profile === null) return say('no profile: the larger program did not take longer')
  say(`out: ${profile.outMibPerS} MiB/s + ${profile.outFixedMs} ms; in: ${profile.inMibPerS} MiB/s + ${profile.inFixedMs} ms`)
  say(`for simulator/fleet/swap-profiles.ts: ${JSON.stringify(profile)}`)
}

/** How long it took, in ms. */
async function expectOutcome(direction: 'out' | 'in', program: CudaProgram, wanted: string): Promise<number> {
  const began = performance.now()
  const outcome = await (direction === 'out' ? accelerator.swapOut(program) : accelerator.swapIn(program))
  const ms = performance.now() - began
  expect(outcome === wanted, `swap-${direction} of ${program.taskId} (${program.vramMib} MiB): ${outcome} in ${Math.round(ms)} ms`)
  return ms
}

function percent(mib: number, share: number): number {
  return Math.floor((mib * share) / 100)
}

async function freeMib(): Promise<number> {
  const { freeMib: free } = await accelerator.sample([])
  if (typeof free[0] !== 'number') throw new Error('NVML does not tell what is free on GPU 0')
  return free[0]
}

async function untilFree(mib: number): Promise<void> {
  for (const began = performance.now(); (await freeMib()) < mib;) {
    if (performance.now() - began > RELEASE_DEADLINE_MS)
      throw new Error(`the memory of a killed program is still taken after ${RELEASE_DEADLINE_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, RELEASE_POLL_MS))
  }
}

function expect(isSo: boolean, claim: string): void {
  if (!isSo) throw new Error(`not so: ${claim}`)
  say(`ok: ${claim}`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
