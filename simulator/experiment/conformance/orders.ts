/** Orders of the examiner: small leases without a command, so that any server can run them. */
import type { CommandResult } from '../../../protocol/messages.ts'
import type { StartCommand } from '../../../protocol/start-command.ts'
import type { DurationMs } from '../../../protocol/units.ts'
import type { Examiner, Forged, Order } from './examiner.ts'

const LEASE_MIB = 16
/** A server reports a change of its device within this time. */
export const SOON_MS: DurationMs = 20_000

/** A task id that no server has seen. */
export function newTask(e: Examiner): string {
  e.taskCount += 1
  return `conformance-${e.epoch}-${e.taskCount}`
}

export function start(
  e: Examiner,
  taskId: string,
  attempt: number,
  fields: Partial<Pick<StartCommand, 'noswap' | 'on_node_loss' | 'vram_mib' | 'gpus' | 'command'>> = {},
  forged: Forged = {},
): Promise<CommandResult | null> {
  const order: Order = {
    op: 'start',
    task_id: taskId,
    attempt,
    gpus: [0],
    vram_mib: LEASE_MIB,
    gpu_mode: 'shared',
    noswap: 0,
    priority: 2,
    on_node_loss: 'wait',
    command: null,
    ...fields,
  }
  return e.order(order, forged)
}

export function stop(
  e: Examiner,
  taskId: string,
  attempt: number,
  forged: Forged = {},
): Promise<CommandResult | null> {
  return e.order({ op: 'stop', task_id: taskId, attempt, reason: 'conformance' }, forged)
}

/** With a grace period between SIGTERM and SIGKILL. */
export function stopWithin(e: Examiner, taskId: string, graceMs: DurationMs): Promise<CommandResult | null> {
  return e.order({ op: 'stop', task_id: taskId, attempt: 1, reason: 'conformance', grace_ms: graceMs })
}

export function swap(
  e: Examiner,
  op: 'swap_out' | 'swap_in',
  taskId: string,
  attempt: number,
  generation: number,
): Promise<CommandResult | null> {
  return e.order({ op, task_id: taskId, attempt, generation, force_active: false })
}

/** Starts a task and waits for the report. A string describes another outcome. */
export async function running(
  e: Examiner,
  fields: Parameters<typeof start>[3] = {},
): Promise<{ readonly taskId: string } | string> {
  const taskId = newTask(e)
  const result = await start(e, taskId, 1, fields)
  if (result?.outcome !== 'accepted') return `a start that fits was answered ${said(result)}`
  const isStarted = await e.until(
    () => e.eventsOf(taskId, 1).some((event) => event.kind === 'started'),
    SOON_MS,
  )
  return isStarted
    ? { taskId }
    : `a task that was accepted was not reported as started within ${SOON_MS / 1000} s`
}

/** Stops a task and waits for the report of its end. */
export async function ended(e: Examiner, taskId: string, attempt = 1): Promise<string | null> {
  const result = await stop(e, taskId, attempt)
  if (result?.outcome !== 'accepted' && result?.outcome !== 'finished' && result?.outcome !== 'gone')
    return `a stop was answered ${said(result)}`
  const isOver = await e.until(() => hasFinished(e, taskId, attempt), SOON_MS)
  return isOver ? null : `a task that was stopped was not reported as finished within ${SOON_MS / 1000} s`
}

export function hasFinished(e: Examiner, taskId: string, attempt: number): boolean {
  return e.eventsOf(taskId, attempt).some((event) => event.kind === 'finished')
}

export function said(result: CommandResult | null): string {
  return result === null
    ? 'nothing'
    : result.reason === null
      ? `'${result.outcome}'`
      : `'${result.outcome}: ${result.reason}'`
}
