/** Wakes of a run, live or virtual: from the planned return of work to the end of the swap-in, seconds. */
import type { Scenario } from '../../simulator/scenario/scenario.ts'
import type { Happened } from './outcome.ts'

/** @param nameOf the id that a task has in the scenario */
export function wakesOf(
  scenario: Scenario,
  events: readonly Happened[],
  nameOf: (task: string) => string,
): readonly number[] {
  const wakes = scenario.workload.flatMap((item) => {
    if (item.kind !== 'task' || item.work.kind !== 'phases') return []
    const own = events.filter(({ task }) => task !== null && nameOf(task) === item.request.id)
    const startedAt = own.find(({ kind }) => kind === 'task_started')?.at
    const [[busyMs, idleMs] = [0, 0]] = item.work.phases
    if (startedAt === undefined || item.work.phases.length < 2) return []
    const wantsAt = startedAt + busyMs + idleMs
    const moves = own.filter(({ kind }) => kind === 'task_residency')
    // A free GPU orders the swap-in in the same instant.
    const isOut = moves.findLast(({ at }) => at < wantsAt)?.data['residency'] === 'swapped_out'
    const back = moves.find(({ at, data }) => at > wantsAt && data['residency'] === 'resident')
    return isOut && back !== undefined ? [(back.at - wantsAt) / 1000] : []
  })
  return wakes.toSorted((a, b) => a - b)
}
