/**
 * `headroom apply -f FILE`: creates the task where the caller has no open task of its name; otherwise changes
 * what can be changed in an open task, and refuses the rest.
 */
import { isDeepStrictEqual } from 'node:util'
import type { HeadroomClient, Task, TaskPatch, TaskRequest } from '../../clients/typescript/client.ts'
import { CommandFailure, EXIT_CONFLICT, EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { openClient, type CommandOptions } from '../command/session.ts'
import { taskLabel } from '../command/task-label.ts'
import { openTasksNamed } from '../command/task-named.ts'
import { printDone } from '../output/table.ts'
import { printDryRun } from './run-task.ts'
import { PATCHABLE, readTaskFile } from './task-file.ts'
import { withManifest, withUpload } from './task-workdir.ts'

export interface ApplyOptions extends CommandOptions {
  readonly file: string
  readonly dryRun?: boolean
}

export async function apply({ file, dryRun = false, output, ...server }: ApplyOptions): Promise<number> {
  const request = readTaskFile(file)
  const { name } = request
  if (name === undefined)
    throw new UsageError(`${file}: \`apply\` requires the field \`name\` to find ` + `the task`)
  const client = openClient(server)
  const [open, second] = await openTasksNamed(client, name)
  if (second !== undefined)
    throw new CommandFailure(
      `you have several open tasks named ${name}; rename or cancel some`,
      EXIT_CONFLICT,
    )
  if (open !== undefined) return change(client, open, await withManifest(request), { dryRun, output })
  if (dryRun) return printDryRun(client, await withManifest(request))
  const task = await client.tasks.submit(await withUpload(client, request))
  await printDone(task, `${taskLabel(task)}: created`, output)
  return EXIT_OK
}

async function change(
  client: HeadroomClient,
  task: Task,
  request: TaskRequest,
  { dryRun, output }: Required<Pick<ApplyOptions, 'dryRun' | 'output'>>,
): Promise<number> {
  const patch = patchFor(task, request)
  const fixed = Object.keys(patch).filter((field) => !PATCHABLE.has(field))
  if (fixed.length > 0)
    throw new CommandFailure(
      `${taskLabel(task)}: ${fixed.join(', ')} cannot be changed in an open task; nothing was changed. ` +
        'Cancel the task and apply the file again, or use another name.',
      EXIT_CONFLICT,
    )
  const fields = Object.keys(patch).join(', ')
  if (fields === '') await printDone(task, `${taskLabel(task)}: unchanged`, output)
  else if (dryRun) await printDone(task, `${taskLabel(task)}: would change ${fields}`, output)
  else
    await printDone(
      await client.tasks.update(task.id, patch),
      `${taskLabel(task)}: changed ${fields}`,
      output,
    )
  return EXIT_OK
}

/** Fields that the file does not name stay as they are. Labels that it does not name are removed. */
function patchFor(task: Task, request: TaskRequest): TaskPatch {
  const now = task as unknown as Readonly<Record<string, unknown>>
  const changed = Object.entries(request).filter(([field, value]) => !isSame(field, now[field], value))
  const patch = Object.fromEntries(changed) as TaskPatch
  if (patch.labels === undefined || patch.labels === null) return patch
  const gone = Object.keys(task.labels).filter((label) => request.labels?.[label] === undefined)
  return { ...patch, labels: { ...patch.labels, ...Object.fromEntries(gone.map((label) => [label, null])) } }
}

/** The controller returns groups in an order of its own. */
function isSame(field: string, now: unknown, value: unknown): boolean {
  if (field !== 'groups' || !Array.isArray(now) || !Array.isArray(value)) return isDeepStrictEqual(now, value)
  return isDeepStrictEqual(new Set(now), new Set(value))
}
