/**
 * Who is placed while somebody ahead of him waits who fits wherever he does (semantics 4). Under `fifo`: before nobody ahead of him in his pool that
 * could run at all. Looked at when a turn is over, in a world where a turn is decided in one cycle.
 */
import type { Event } from '../../controller/domain/event.ts'
import type { Report } from '../check/violation.ts'
import type { World } from '../world.ts'

type Cluster = World['controller']['engine']['cluster']
type LiveTask = Cluster['tasks'] extends ReadonlyMap<string, infer T> ? T : never

export function checkQueueOrder(world: World, events: readonly Event[], report: Report): void {
  const { cluster } = world.controller.engine
  if (cluster.policy.queueAgingMs !== null) return
  const placed = events.filter(({ kind }) => kind === 'task_placed').map(({ taskId }) => cluster.tasks.get(taskId ?? ''))
  for (const task of placed) {
    if (task === undefined) continue
    for (const waiting of cluster.tasks.values()) {
      if (waiting.queue === null || waiting.refusedBy !== null || waiting.trouble.refusals.length > 0 || !isAhead(waiting, task)) continue
      const isOvertaken = cluster.policy.strategy === 'fifo' ? cluster.isFeasible(waiting) : fitsWherever(waiting, task, events)
      if (isOvertaken) report(`it is placed while ${waiting.spec.id}, which is ahead of it, waits`, { taskId: task.spec.id })
    }
  }
}

function isAhead({ spec }: LiveTask, { spec: other }: LiveTask): boolean {
  if (poolOf(spec.groups) !== poolOf(other.groups)) return false
  return spec.priority === other.priority ? spec.seq < other.seq : spec.priority < other.priority
}

/** Alike but for the demand, which is no larger. Only where it fitted without a swap: who owns bytes was first when he began to. */
function fitsWherever({ spec }: LiveTask, { spec: other }: LiveTask, events: readonly Event[]): boolean {
  const isNow = events.some(({ kind, taskId, data }) => kind === 'task_placed' && taskId === other.id && data['when'] === 'now')
  const isAlike = spec.gpuCount === other.gpuCount && spec.gpuMode === other.gpuMode && spec.noswap === other.noswap
  return isNow && isAlike && spec.vramMib <= other.vramMib && (spec.command === null) === (other.command === null)
}

function poolOf(groups: readonly string[]): string {
  return groups.join('\n')
}
