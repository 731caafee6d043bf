/** What a host gets for attempts before their launch: the image of the container, and the work folder. */
import type { LaunchRequest, PrepareProgress, Prepared, PrepareRequest } from '../core/device.ts'
import type { Containers } from '../guard/containers.ts'
import { folderNameOf } from '../guard/guard-folder.ts'
import type { LaunchAnswer, TaskPlace } from '../guard/guards.ts'
import { NO_RUNTIME, refusalOfFault, STOPPED_FIRST } from '../guard/launch-refusal.ts'
import type { TaskPlaces } from './task-places.ts'
import { errorText } from '../../protocol/error-text.ts'

export interface HostPreparationOptions {
  readonly places: TaskPlaces
  /** Fills work folders; absent: no task with an uploaded folder is accepted. */
  readonly workdirs?: Workdirs | null
  /** The engine whose images are prepared; absent: none. */
  readonly containers?: Containers | null
}

export interface Workdirs {
  /** Fills the folder; resolves with why it could not, or null. Rejects with an error of the host. */
  prepare(
    place: TaskPlace,
    workdir: NonNullable<LaunchRequest['workdir']>,
    signal: AbortSignal,
    onProgress?: (bytesDone: number, bytesTotal: number) => void,
  ): Promise<Extract<LaunchAnswer, { readonly error: string }> | null>
}

interface Preparing {
  readonly stop: AbortController
  readonly done: Promise<Prepared>
}

export class HostPreparations {
  readonly #options: HostPreparationOptions
  readonly #byAttempt = new Map<string, Preparing>()

  constructor(options: HostPreparationOptions) {
    this.#options = options
  }

  /** Resolves with null once everything is here; after a failure nothing of it is left. */
  prepare(request: PrepareRequest, onProgress: (progress: PrepareProgress) => void): Promise<Prepared> {
    const { taskId, attempt } = request
    const key = folderNameOf(taskId, attempt)
    const stop = new AbortController()
    const done = this.#run(request, stop.signal, onProgress).then(async (prepared) => {
      if (prepared !== null) await this.#options.places.drop(taskId, attempt).catch(() => {})
      return prepared
    })
    this.#byAttempt.set(key, { stop, done })
    return done
  }

  /** Called at the launch of the attempt: resolves with true if its image and files are ready. */
  async take(taskId: string, attempt: number): Promise<boolean> {
    const key = folderNameOf(taskId, attempt)
    const preparing = this.#byAttempt.get(key)
    if (preparing === undefined) return false
    this.#byAttempt.delete(key)
    return (await preparing.done) === null
  }

  drop(taskId: string, attempt: number): void {
    const key = folderNameOf(taskId, attempt)
    const preparing = this.#byAttempt.get(key)
    if (preparing === undefined) return
    this.#byAttempt.delete(key)
    preparing.stop.abort()
    // A failure has removed its folder already.
    void preparing.done.then((prepared) =>
      prepared === null ? this.#options.places.drop(taskId, attempt).catch(() => {}) : undefined,
    )
  }

  async #run(
    { taskId, attempt, image, workdir }: PrepareRequest,
    signal: AbortSignal,
    onProgress: (progress: PrepareProgress) => void,
  ): Promise<Prepared> {
    const { containers = null, places, workdirs = null } = this.#options
    let ofImage: PrepareProgress = { bytesDone: 0, bytesTotal: null }
    try {
      if (image !== undefined) {
        if (containers === null) return { error: 'this server runs no containers', refused: NO_RUNTIME }
        const found = await containers.prepare(image, {
          signal,
          onProgress: (bytesDone, bytesTotal) => onProgress((ofImage = { bytesDone, bytesTotal })),
        })
        if (signal.aborted) return STOPPED
        if (found.error !== null) return found
      }
      if (workdir === undefined || workdirs === null) return null
      const place = await places.prepare(taskId, attempt)
      return await workdirs.prepare(place, workdir, signal, (bytesDone, bytesTotal) =>
        onProgress({
          bytesDone: ofImage.bytesDone + bytesDone,
          bytesTotal: (ofImage.bytesTotal ?? 0) + bytesTotal,
        }),
      )
    } catch (error) {
      return {
        error: errorText(error),
        refused: refusalOfFault(error, 'work_folder'),
      }
    }
  }
}

const STOPPED: Prepared = { error: 'it was stopped first', refused: STOPPED_FIRST }
