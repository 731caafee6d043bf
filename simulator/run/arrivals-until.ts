/** The arrivals of one run: a source that ends in time and never yields an id that is in use. */
import type { DurationMs } from '../../protocol/units.ts'
import type { ArrivalSource } from '../scenario/arrivals.ts'
import type { SimTask } from '../scenario/scenario.ts'
import { TraceError } from '../trace/trace-error.ts'

export interface BoundedArrivals extends ArrivalSource {
  /** Its last task was taken. */
  readonly isOver: boolean
  /** The owner of an unfinished task of it will cancel after that time. */
  hasCancelAfter(atMs: DurationMs): boolean
}

/**
 * The tasks of `source` that arrive at `untilMs` or before; null takes all. Later ones are never read.
 * @param isOpen returns whether the run has an unfinished task of that id. The controller would refuse such
 *   an id: `next` throws TraceError
 */
export function arrivalsUntil(
  source: ArrivalSource,
  untilMs: DurationMs | null,
  isOpen: (id: string) => boolean,
): BoundedArrivals {
  let isOver = false
  const cancels: { readonly id: string; readonly atMs: DurationMs }[] = []
  return {
    get isOver() {
      return isOver
    },
    get needsFill() {
      return !isOver && source.needsFill
    },
    fill: () => source.fill(),
    next(): SimTask | null {
      const task = isOver ? null : source.next()
      if (task === null || (untilMs !== null && task.at > untilMs)) {
        isOver = true
        return null
      }
      const { id } = task.request
      if (isOpen(id))
        throw new TraceError(
          { field: 'id' },
          `${id} comes a second time while the first task with that ID is still there`,
        )
      if (task.cancelAt !== null) cancels.push({ id, atMs: task.cancelAt })
      return task
    },
    hasCancelAfter: (atMs) => cancels.some((cancel) => cancel.atMs > atMs && isOpen(cancel.id)),
    close: () => source.close(),
  }
}
