/** GPU 0 of this host as seen by the server's own code, with the programs of a test. */
import type { Mib } from '../../protocol/units.ts'
import { NvidiaAccelerator } from '../../gpu-server/devices/nvidia/nvidia-accelerator.ts'
import { CudaProgram } from './cuda-program.ts'
import { expect, say } from './say.ts'

/** A killed program frees its memory a moment later. */
const RELEASE_DEADLINE_MS = 30_000
const RELEASE_POLL_MS = 200

export interface Libraries {
  readonly nvml: string | undefined
  readonly cuda: string | undefined
}

export class GpuHost {
  readonly accelerator: NvidiaAccelerator
  readonly #cudaLibrary: string
  readonly #programs: CudaProgram[] = []

  constructor({ nvml, cuda = 'libcuda.so.1' }: Libraries) {
    this.#cudaLibrary = cuda
    this.accelerator = new NvidiaAccelerator({
      cudaLibrary: cuda,
      ...(nvml === undefined ? {} : { nvmlLibrary: nvml }),
      onNote: (line) => say(`note: ${line}`),
    })
  }

  /** @param program the compiled `fill` */
  async start(program: string, name: string, mib: Mib): Promise<CudaProgram> {
    const environment = this.accelerator.environment([0])
    const started = await CudaProgram.start({
      program,
      cudaLibrary: this.#cudaLibrary,
      name,
      mib,
      environment,
    })
    this.#programs.push(started)
    return started
  }

  /** Returns its duration in ms. Throws on another outcome. */
  async swap(direction: 'out' | 'in', program: CudaProgram, wanted = 'done'): Promise<number> {
    const began = performance.now()
    const outcome = await (direction === 'out'
      ? this.accelerator.swapOut(program)
      : this.accelerator.swapIn(program))
    const ms = performance.now() - began
    expect(
      outcome === wanted,
      `swap-${direction} of ${program.taskId} (${program.vramMib} MiB): ${outcome} in ${Math.round(ms)} ms`,
    )
    return ms
  }

  async freeMib(): Promise<Mib> {
    const { freeMib: free } = await this.accelerator.sample([])
    if (typeof free[0] !== 'number') throw new Error('NVML does not report the free memory of GPU 0')
    return free[0]
  }

  async untilFree(mib: Mib): Promise<void> {
    for (const began = performance.now(); (await this.freeMib()) < mib;) {
      if (performance.now() - began > RELEASE_DEADLINE_MS)
        throw new Error(`the memory of a killed program is still taken after ${RELEASE_DEADLINE_MS} ms`)
      await new Promise((resolve) => setTimeout(resolve, RELEASE_POLL_MS))
    }
  }

  /** Ends all programs and helpers. */
  async close(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.end()))
    await this.accelerator.close()
  }
}
