import type { Device, PrepareProgress, Prepared } from '../../gpu-server/core/device.ts'

type Call<K extends 'prepare' | 'unprepare' | 'imagesHere'> = NonNullable<Device[K]>

/** The part of a device that prepares: a test says when one is over, and which images are here. */
export class FakePreparations {
  readonly calls: string[] = []
  readonly images = new Set<string>()
  readonly preparing = new Map<
    string,
    { readonly onProgress: (progress: PrepareProgress) => void; readonly done: (prepared: Prepared) => void }
  >()

  readonly prepare: Call<'prepare'> = ({ taskId, attempt }, onProgress, done) => {
    this.record('prepare', taskId, attempt)
    this.preparing.set(taskId, { onProgress, done })
  }

  readonly unprepare: Call<'unprepare'> = (taskId, attempt) => this.record('unprepare', taskId, attempt)

  readonly imagesHere: Call<'imagesHere'> = (images, done) =>
    done(images.filter((image) => this.images.has(image)))

  protected record(call: string, taskId: string, attempt: number): void {
    this.calls.push(attempt === 1 ? `${call} ${taskId}` : `${call} ${taskId}/${attempt}`)
  }
}
