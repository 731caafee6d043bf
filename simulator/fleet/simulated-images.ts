/** Images of a simulated host: each arrives a fixed time after it was asked for, and then stays. */
import type { Device, Prepared, PrepareRequest } from '../../gpu-server/core/device.ts'
import { RANK_DEVICE, type CancelTimer } from '../../controller/ports/clock.ts'
import type { DurationMs } from '../../protocol/units.ts'
import type { SimClock } from '../kernel/virtual-clock.ts'

type Done = (prepared: Prepared) => void

export class SimulatedImages implements Pick<Device, 'prepare' | 'unprepare' | 'imagesHere'> {
  readonly #clock: SimClock
  readonly #prepareMs: DurationMs
  readonly #here = new Set<string>()
  /** By task: a server prepares one attempt of each. */
  readonly #arriving = new Map<string, CancelTimer>()

  /** @param prepareMs 0: every image is here */
  constructor(clock: SimClock, prepareMs: DurationMs) {
    this.#clock = clock
    this.#prepareMs = prepareMs
  }

  prepare({ taskId, image }: PrepareRequest, _onProgress: unknown, done: Done): void {
    const arrived = (): void => {
      this.#arriving.delete(taskId)
      if (image !== undefined) this.#here.add(image)
      done(null)
    }
    const at = this.#clock.now() + this.missingMs(image)
    this.#arriving.set(taskId, this.#clock.at(at, arrived, RANK_DEVICE))
  }

  unprepare(taskId: string): void {
    this.#arriving.get(taskId)?.()
    this.#arriving.delete(taskId)
  }

  imagesHere(images: readonly string[], done: (here: readonly string[]) => void): void {
    done(images.filter((image) => this.#here.has(image)))
  }

  /** Time until the image would be here; a start waits for it. */
  missingMs(image: string | undefined): DurationMs {
    return image === undefined || this.#here.has(image) ? 0 : this.#prepareMs
  }
}
