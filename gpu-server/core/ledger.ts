/** What is in VRAM and in host memory on this server, by its own count: it refuses whatever would break the reserve (R12). */
import type { Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'

export class Ledger {
  readonly #residentMib: Mib[]
  readonly #gpus: readonly GpuReport[]
  readonly #hostSwapMib: Mib
  #hostUsedMib = 0
  reserveMib: Mib

  constructor(gpus: readonly GpuReport[], hostSwapMib: Mib, reserveMib: Mib) {
    this.#gpus = gpus
    this.#residentMib = gpus.map(() => 0)
    this.#hostSwapMib = hostSwapMib
    this.reserveMib = reserveMib
  }

  has(gpu: number): boolean {
    return gpu in this.#residentMib
  }

  /** Would `mib` more on each of these GPUs keep the reserve? */
  fits(gpus: readonly number[], mib: Mib): boolean {
    return gpus.every((gpu) => {
      const report = this.#gpus[gpu]
      return report !== undefined && (this.#residentMib[gpu] ?? 0) + mib <= report.physical_mib - report.foreign_mib - this.reserveMib
    })
  }

  fitsHost(mib: Mib): boolean {
    return this.#hostUsedMib + mib <= this.#hostSwapMib
  }

  addResident(gpus: readonly number[], mib: Mib): void {
    for (const gpu of gpus) this.#residentMib[gpu] = (this.#residentMib[gpu] ?? 0) + mib
  }

  addHost(mib: Mib): void {
    this.#hostUsedMib += mib
  }

  residentMib(gpu: number): Mib {
    return this.#residentMib[gpu] ?? 0
  }
}
