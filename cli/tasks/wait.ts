/** `headroom task wait`: waits until tasks have ended, and exits with their exit code. */
import type { HeadroomClient, Task } from '../../clients/typescript/client.ts'
import { isFinal } from '../../controller/model/task.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { CommandFailure, EXIT_OK, EXIT_TIMEOUT } from '../../services/exit-codes.ts'
import { formatDuration } from '../../simulator/document/quantity.ts'
import { exitCodeOfTask } from '../command/interrupts.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { taskNamed } from '../command/task-named.ts'
import { printDone } from '../output/table.ts'
import { visible } from '../output/terminal-text.ts'
import { retryWhileUnreachable } from '../run/retry.ts'

export interface WaitOptions extends CommandOptions {
  readonly timeout?: DurationMs
}

/** Shorter than the time limit of a request. */
const WAIT = '20s'

/** One task after the other: the last of them to end decides how long it takes, in any order. */
export async function taskWait(
  texts: readonly string[],
  { output, timeout, ...server }: WaitOptions,
): Promise<number> {
  const over = timeout === undefined ? null : AbortSignal.timeout(timeout)
  const client = openClient(server, over === null ? {} : { signal: over })
  let exitCode = EXIT_OK
  try {
    const ids: string[] = []
    for (const text of texts) ids.push(await taskNamed(client, text))
    for (const id of ids) {
      const task = await ended(client, id, over ?? undefined)
      await printDone(task, `${taskLabel(task)}: ${endOf(task)}`, output)
      if (exitCode === EXIT_OK) exitCode = exitCodeOfTask(task)
    }
  } catch (error) {
    if (over?.aborted !== true) throw error
    const limit = formatDuration(timeout ?? 0)
    throw new CommandFailure(`Timed out after ${limit}. The tasks continue.`, EXIT_TIMEOUT)
  }
  return exitCode
}

async function ended(client: HeadroomClient, id: string, signal: AbortSignal | undefined): Promise<Task> {
  // The first request is not retried: an unknown task or a missing controller is an error at once.
  let task = await client.tasks.get(id)
  while (!isFinal(task.state)) {
    task = await retryWhileUnreachable(
      () => client.tasks.get(id, { wait: WAIT }),
      (error) =>
        void process.stderr.write(`headroom: ${visible(error.message)}; waiting for the controller\n`),
      signal,
    )
  }
  return task
}

function endOf({ state, exit_code: code, end_reason: reason }: Task): string {
  if (code !== null) return `${state}, exit code ${code}`
  return reason === null || state === 'completed' ? state : `${state}: ${reason}`
}
