/**
 * What this server prepares before starts: images and uploaded folders of tasks that may be placed here. Only
 * memory of this process: after a restart the controller asks again.
 */
import { MAX_DETAIL_LENGTH, MAX_PREPARATIONS_PER_NODE } from '../../protocol/limits.ts'
import type { AttemptRef, PrepareCommand, RefusalReason } from '../../protocol/messages.ts'
import type { PreparationReport } from '../../protocol/preparing.ts'
import type { StartRefused } from '../../protocol/message-fields.ts'
import type { Device, PrepareProgress, Prepared, ReadBlobPart } from './device.ts'

interface Preparation extends PrepareProgress {
  readonly taskId: string
  readonly attempt: number
  state: PreparationReport['state']
  bytesDone: number
  bytesTotal: number | null
  failure: NonNullable<Prepared> | null
}

/** The device did not say why. */
const UNEXPLAINED: StartRefused = { cause: 'passing', code: 'not_prepared' }

export class Preparations {
  readonly #device: Device
  readonly #blobsOf: (taskId: string, attempt: number) => ReadBlobPart
  readonly #onOver: () => void
  readonly #byTask = new Map<string, Preparation>()
  #imagesHere: readonly string[] = []

  /** @param onOver one has ended, and the controller should know */
  constructor(
    device: Device,
    blobsOf: (taskId: string, attempt: number) => ReadBlobPart,
    onOver: () => void,
  ) {
    this.#device = device
    this.#blobsOf = blobsOf
    this.#onOver = onOver
  }

  /** A repeated command changes nothing. The caller has checked that the attempt may start here. */
  begin({ task_id: taskId, attempt, image, workdir }: PrepareCommand): RefusalReason | null {
    const present = this.#byTask.get(taskId)
    if (present?.attempt === attempt) return null
    if (present !== undefined) this.#drop(present)
    if (this.#byTask.size >= MAX_PREPARATIONS_PER_NODE) return 'node_full'
    const preparation: Preparation = {
      ...{ taskId, attempt, state: 'preparing', bytesDone: 0, bytesTotal: null, failure: null },
    }
    this.#byTask.set(taskId, preparation)
    const request = {
      ...{ taskId, attempt },
      ...(image === undefined ? {} : { image }),
      ...(workdir === undefined
        ? {}
        : { workdir: { sha256: workdir, read: this.#blobsOf(taskId, attempt) } }),
    }
    this.#device.prepare?.(
      request,
      ({ bytesDone, bytesTotal }) => Object.assign(preparation, { bytesDone, bytesTotal }),
      (prepared) => this.#ended(preparation, prepared),
    )
    return null
  }

  /** The attempt starts: its device uses what is prepared for it. What earlier attempts left is removed. */
  started(taskId: string, attempt: number): void {
    const preparation = this.#byTask.get(taskId)
    if (preparation === undefined) return
    if (preparation.attempt === attempt) this.#byTask.delete(taskId)
    else if (preparation.attempt < attempt) this.#drop(preparation)
  }

  /** The attempt never starts here. */
  drop({ task_id, attempt }: AttemptRef): void {
    const preparation = this.#byTask.get(task_id)
    if (preparation?.attempt === attempt) this.#drop(preparation)
  }

  dropAll(): void {
    for (const preparation of [...this.#byTask.values()]) this.#drop(preparation)
  }

  /** The controller asks which of these the host has. */
  asked(images: readonly string[]): void {
    if (images.length === 0) this.#imagesHere = []
    else this.#device.imagesHere?.(images, (here) => (this.#imagesHere = here))
  }

  /** For hello and heartbeats; absent where there is nothing to say. */
  reports(): { readonly preparing?: readonly PreparationReport[]; readonly images?: readonly string[] } {
    if (this.#byTask.size === 0 && this.#imagesHere.length === 0) return {}
    const preparing = [...this.#byTask.values()].map(reportOf)
    return { preparing, ...(this.#imagesHere.length === 0 ? {} : { images: this.#imagesHere }) }
  }

  #ended(preparation: Preparation, prepared: Prepared): void {
    if (this.#byTask.get(preparation.taskId) !== preparation) return
    preparation.state = prepared === null ? 'prepared' : 'failed'
    preparation.failure = prepared
    this.#onOver()
  }

  #drop({ taskId, attempt }: Preparation): void {
    this.#byTask.delete(taskId)
    this.#device.unprepare?.(taskId, attempt)
  }
}

function reportOf(preparation: Preparation): PreparationReport {
  const { taskId: task_id, attempt, state, bytesDone: bytes_done, bytesTotal: bytes_total } = preparation
  const { failure } = preparation
  return {
    ...{ task_id, attempt, state, bytes_done, bytes_total },
    ...(failure === null
      ? {}
      : {
          start_refused: failure.refused ?? UNEXPLAINED,
          detail: failure.error.slice(0, MAX_DETAIL_LENGTH),
        }),
  }
}
