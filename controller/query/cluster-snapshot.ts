/**
 * Returns the live cluster as records. Scans all nodes and open tasks; shares nothing with the live objects.
 */
import type { Instant } from '../../protocol/units.ts'
import { specOfRequest } from '../../protocol/task-body.ts'
import type { TaskRequest } from '../../protocol/task.ts'
import { TRIED_TASK_ID, type ClusterSnapshot } from '../ports/twin.ts'
import { byQueueOrder, queueClass } from '../policy/placement/queue.ts'
import type { Cluster } from '../state/cluster.ts'
import { newLiveTask } from '../state/new-facts.ts'
import type { LiveTask } from '../state/facts.ts'
import { recordOfNode, recordOfTask } from '../state/records.ts'

export function snapshotOf(c: Cluster, now: Instant, tried?: TaskRequest): ClusterSnapshot {
  const placed: LiveTask[] = []
  const pending: { readonly task: LiveTask; readonly queueClass: number }[] = []
  for (const task of c.tasks.values()) {
    if (task.placement === null) pending.push({ task, queueClass: task.queueClass })
    else placed.push(task)
  }
  if (tried !== undefined) pending.push(queuedNow(c, tried, now))
  pending.sort(byQueueOrder)
  return {
    at: now,
    config: c.config.fields,
    nodes: [...c.nodes.values()].map((node) => ({ ...recordOfNode(node), status: node.status })),
    groups: [...c.groups.values()],
    tasks: [...placed.map(recordOfTask), ...pending.map(({ task }) => recordOfTask(task))],
  }
}

function queuedNow(
  c: Pick<Cluster, 'nextTaskSeq' | 'policy'>,
  request: TaskRequest,
  now: Instant,
): { readonly task: LiveTask; readonly queueClass: number } {
  const spec = specOfRequest(request, TRIED_TASK_ID, c.nextTaskSeq, c.policy.maxRequeues, now)
  const task = newLiveTask(spec, now)
  return { task, queueClass: queueClass(task, c.policy, now) }
}
