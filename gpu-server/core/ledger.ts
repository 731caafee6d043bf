/**
 * VRAM and host memory in use on this server, by its own count. The server refuses what would break the
 * reserve (R12). Each attempt stores what is counted for it, so that leaving returns exactly what entering
 * took.
 */
import type { Mib } from '../../protocol/units.ts'
import type { GpuReport } from '../../protocol/messages.ts'
import type { Attempt } from './attempt.ts'

export class Ledger {
  readonly #gpus: () => readonly GpuReport[]
  readonly #residentMib: Mib[]
  readonly #hostSwapMib: Mib
  #hostUsedMib = 0
  /** VRAM kept free on each GPU. Nothing fits until the controller has sent the reserve. */
  reserveMib: Mib = Infinity

  /** @param gpus returns the current GPUs: foreign memory changes. */
  constructor(gpus: () => readonly GpuReport[], hostSwapMib: Mib) {
    this.#gpus = gpus
    this.#residentMib = gpus().map(() => 0)
    this.#hostSwapMib = hostSwapMib
  }

  /** True if the list names at least one GPU, only GPUs of this server, and none twice. */
  hasAll(gpus: readonly number[]): boolean {
    for (let place = 0; place < gpus.length; place++) {
      const gpu = gpus[place] as number
      if (this.#residentMib[gpu] === undefined || gpus.indexOf(gpu) !== place) return false
    }
    return gpus.length > 0
  }

  /** True if `mib` more on each of these GPUs keeps the reserve. */
  fits(gpus: readonly number[], mib: Mib): boolean {
    const reports = this.#gpus()
    for (const gpu of gpus) {
      const report = reports[gpu]
      const resident = this.#residentMib[gpu]
      if (report === undefined || resident === undefined) return false
      if (resident + mib > report.physical_mib - report.foreign_mib - this.reserveMib) return false
    }
    return true
  }

  fitsHost(mib: Mib): boolean {
    return this.#hostUsedMib + mib <= this.#hostSwapMib
  }

  /** Adds `mib` on each of its GPUs. */
  enterVram(attempt: Attempt, mib: Mib): void {
    attempt.residentMib += mib
    this.#count(attempt.gpus, mib)
  }

  /** @param keptMib what stays on each of its GPUs */
  leaveVram(attempt: Attempt, keptMib: Mib = 0): void {
    this.#count(attempt.gpus, keptMib - attempt.residentMib)
    attempt.residentMib = keptMib
  }

  enterHost(attempt: Attempt, mib: Mib): void {
    attempt.hostMib += mib
    this.#hostUsedMib += mib
  }

  leaveHost(attempt: Attempt): void {
    this.#hostUsedMib -= attempt.hostMib
    attempt.hostMib = 0
  }

  #count(gpus: readonly number[], mib: Mib): void {
    for (const gpu of gpus) {
      const resident = this.#residentMib[gpu]
      // The GPU of an adopted task may no longer exist.
      if (resident !== undefined) this.#residentMib[gpu] = resident + mib
    }
  }
}
