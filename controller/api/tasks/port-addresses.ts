/** Where clients reach the declared ports of a placed task. */
import type { AttemptRecord } from '../../../protocol/messages.ts'
import type { Placement } from '../../model/placement.ts'
import type { TaskLogs } from '../../ports/task-logs.ts'
import type { AssignmentBody } from './assignment-schema.ts'

/** Asks its GPU server. */
export async function portAddresses(
  placement: Placement,
  logs: TaskLogs | null,
): Promise<AssignmentBody['ports']> {
  return presentPorts(placement, await recordOf(placement, logs))
}

type PortAddresses = Pick<AttemptRecord, 'port_addresses'>

/** Returns what its server reports about a task with declared ports; null: unknown, or no ports. */
async function recordOf(
  { task, node, startedAt }: Placement,
  logs: TaskLogs | null,
): Promise<PortAddresses | null> {
  const isAsked = task.spec.ports !== undefined && node.status === 'up' && startedAt !== null
  return isAsked ? ((await logs?.readRecord?.(node.id, task.spec.id, task.attempt)) ?? null) : null
}

function presentPorts({ task, startedAt }: Placement, record: PortAddresses | null): AssignmentBody['ports'] {
  const unknown = startedAt === null ? 'the task has not started' : 'its GPU server does not respond'
  const known = record?.port_addresses
  return (task.spec.ports ?? []).map(({ name, target, protocol }) => {
    const port = { name, target, protocol }
    if (record === null) return { ...port, address: null, detail: unknown }
    const found = known?.find((one) => one.target === target)
    if (found !== undefined) return { ...port, address: found.address, detail: found.detail }
    return { ...port, address: null, detail: 'no proxy: clients connect to the port of the task' }
  })
}
