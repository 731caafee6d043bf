/** From the body of a request to what the engine is asked for. */
import type { Task } from '../../model/placement.ts'
import { type TaskChange } from '../../model/command.ts'
import { requestOfBody, faultInSwapMethod, sharedPortName } from '../../../protocol/task-body.ts'
import type { TaskEnvironment, TaskRequest } from '../../../protocol/task.ts'
import { faultInVramLimit, LIMIT_FIELDS } from '../../../protocol/resource-limits.ts'
import { invalidField } from '../http/errors.ts'
import { TASK_LIMITS, type TaskPatchBody, type TaskRequestBody } from './schema.ts'

/**
 * @throws ApiProblem when `vram_mib` is missing and the task would share its GPU, its command names no
 *   program, it has an image, data folders or limits without a command, or two of its ports have one name.
 */
export function taskRequest(
  body: TaskRequestBody,
  owner: string | null,
  environment: TaskEnvironment | null,
): TaskRequest {
  if (body.vram_mib === undefined && body.gpu_mode !== 'exclusive') {
    throw invalidField(
      '/vram_mib',
      'vram_mib is required: an integer from 1 to 16777216; only a task with gpu_mode exclusive may omit it',
    )
  }
  if (body.command?.[0] === '')
    throw invalidField('/command/0', 'command.0 must be the program to run, got ""')
  if (body.command === undefined && typeof body.image === 'string')
    throw invalidField('/image', 'image requires a command; a lease has none')
  const fault = faultInSwapMethod(body)
  if (fault !== null) throw invalidField(`/${fault[0].replace('.', '/')}`, `${fault[0]} ${fault[1]}`)
  const twice = sharedPortName(body.ports ?? [])
  if (twice !== null) throw invalidField('/ports', `ports must not contain the name ${twice} twice`)
  for (const field of ['workdir', 'cwd'] as const)
    if (body.command === undefined && typeof body[field] === 'string')
      throw invalidField(`/${field}`, `${field} requires a command; a lease has none`)
  if (typeof body.cwd === 'string' && typeof body.image === 'string')
    throw invalidField('/cwd', 'cwd is a folder on the host, which a task with an image cannot access')
  if (body.command === undefined && (body.mounts ?? []).length > 0)
    throw invalidField('/mounts', 'mounts requires a command; a lease has none')
  const limit = LIMIT_FIELDS.find((field) => typeof body[field] === 'number')
  if (body.command === undefined && limit !== undefined)
    throw invalidField(`/${limit}`, `${limit} requires a command; a lease has none`)
  requireVramLimit('vram_limit_mib', body.vram_mib ?? null, body.vram_limit_mib ?? null)
  const request = requestOfBody(body, null, owner)
  return environment === null ? request : { ...request, environment }
}

/** A merge patch applied to the task as it is (RFC 7396). */
export function taskChange(task: Task, patch: TaskPatchBody): TaskChange {
  const limitMib = task.spec.limits?.vramMib ?? null
  if (limitMib !== null && (patch.vram_mib ?? 0) > limitMib)
    throw invalidField('/vram_mib', `vram_mib must be at most the vram_limit_mib of the task, ${limitMib}`)
  return {
    ...(patch.noswap === undefined ? {} : { noswap: patch.noswap }),
    ...(patch.priority === undefined ? {} : { priority: patch.priority }),
    ...(patch.vram_mib === undefined ? {} : { vramMib: patch.vram_mib }),
    ...(patch.on_node_loss === undefined ? {} : { onNodeLoss: patch.on_node_loss }),
    ...(patch.stop_grace_seconds === undefined ? {} : { stopGraceSeconds: patch.stop_grace_seconds }),
    ...(patch.groups === undefined ? {} : { groups: patch.groups ?? [] }),
    ...(patch.labels === undefined ? {} : { labels: mergeLabels(task.spec.labels, patch.labels) }),
  }
}

function requireVramLimit(field: string, demandMib: number | null, limitMib: number | null): void {
  const fault = faultInVramLimit(demandMib, limitMib)
  if (fault !== null) throw invalidField(`/${field}`, `${field} ${fault}`)
}

type Labels = Readonly<Record<string, string>>

function mergeLabels(labels: Labels, patch: Readonly<Record<string, string | null>> | null): Labels {
  if (patch === null) return {}
  const merged = Object.entries({ ...labels, ...patch }).filter(
    (entry): entry is [string, string] => entry[1] !== null,
  )
  if (merged.length > TASK_LIMITS.labels) {
    throw invalidField(
      '/labels',
      `labels must be an object of at most ${TASK_LIMITS.labels} fields; with this change it would have ` +
        `${merged.length}`,
    )
  }
  return Object.fromEntries(merged)
}
