/** The environment variables of a submission: checked, and encrypted for the store. */
import { MAX_ENVIRONMENT_LENGTH, MAX_VARIABLES } from '../../../protocol/limits.ts'
import type { TaskEnvironment } from '../../../protocol/task.ts'
import type { AccessRegistry } from '../../engine/inputs/commands/access-registry.ts'
import { namesOf, openedSecret, sealedEnvironment, type Values } from '../../model/environment-values.ts'
import type { Task } from '../../model/placement.ts'
import type { Sealer } from '../../ports/sealer.ts'
import type { Access } from '../auth/access.ts'
import { ApiProblem, invalidField, tryLater } from '../http/errors.ts'

/** Set by the GPU server, so that a task reaches its own GPUs and no others. */
const RESERVED = /^(HEADROOM_.*|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES)$/

interface Body {
  readonly command?: readonly string[]
  readonly env?: Values
  readonly secrets?: Values
}

/**
 * @param isDryRun nothing runs, so the values are not kept; as in a simulated cluster
 * @throws ApiProblem for a name that the GPU server sets, an unknown secret, or too many bytes
 */
export function environmentOf(
  body: Body,
  owner: string | null,
  { book, sealer }: Pick<Access, 'book' | 'sealer'>,
  isDryRun: boolean,
): TaskEnvironment | null {
  const { command, env = {}, secrets = {} } = body
  if (command === undefined && (body.env !== undefined || body.secrets !== undefined))
    throw invalidField('/env', 'env and secrets require a command; a lease has none')
  const variables = [...Object.keys(env), ...Object.keys(secrets)]
  if (variables.length === 0) return null
  refuseReserved('env', env)
  refuseReserved('secrets', secrets)
  const twice = Object.keys(secrets).find((name) => name in env)
  if (twice !== undefined)
    throw invalidField(`/secrets/${twice}`, `env and secrets both set ${twice}: remove one of them`)
  if (variables.length > MAX_VARIABLES)
    throw invalidField(
      '/env',
      `env and secrets can set at most ${MAX_VARIABLES} variables, got ${variables.length}`,
    )
  const withoutValues = { names: namesOf(env), secrets, sealed: null }
  if (book === null) return withoutValues
  const values = { env, secrets: valuesOf(secrets, owner, book, sealer) }
  const bytes = Buffer.byteLength(JSON.stringify({ ...values.env, ...values.secrets }))
  if (bytes > MAX_ENVIRONMENT_LENGTH)
    throw invalidField(
      '/env',
      `env and secrets can have at most ${MAX_ENVIRONMENT_LENGTH} bytes as JSON, got ${bytes}`,
    )
  return sealer === null || isDryRun ? withoutValues : sealedEnvironment(sealer, values, secrets, owner)
}

/**
 * Limits of what open tasks keep in memory and store, in characters of the encrypted values.
 * @throws ApiProblem too_many_pending
 */
export function requireEnvironmentRoom(
  openTasks: Iterable<Task>,
  environment: TaskEnvironment | null,
  owner: string | null,
  limits = { ofAll: 256 * MIB, ofOwner: 32 * MIB },
): void {
  const size = environment?.sealed?.length ?? 0
  if (size === 0) return
  let ofAll = size
  let ofOwner = size
  for (const { spec } of openTasks) {
    const taken = spec.environment?.sealed?.length ?? 0
    ofAll += taken
    if (spec.owner === owner) ofOwner += taken
  }
  const isOwn = ofOwner > limits.ofOwner
  if (!isOwn && ofAll <= limits.ofAll) return
  throw tryLater(
    'too_many_pending',
    `The environment variables of ${isOwn ? `open tasks of ${owner ?? 'one owner'}` : 'all open tasks'} ` +
      `would exceed their limit of ${Math.floor((isOwn ? limits.ofOwner : limits.ofAll) / MIB)} MiB.`,
  )
}

const MIB = 1_048_576

function refuseReserved(field: 'env' | 'secrets', variables: Values): void {
  const name = Object.keys(variables).find((each) => RESERVED.test(each))
  if (name !== undefined)
    throw invalidField(`/${field}/${name}`, `${field}.${name} must not be set: the GPU server sets it`)
}

function valuesOf(
  secrets: Values,
  owner: string | null,
  book: AccessRegistry,
  sealer: Sealer | null,
): Record<string, string> {
  const values: Record<string, string> = {}
  for (const [variable, name] of Object.entries(secrets)) {
    const secret = book.secret(owner, name)
    const value = secret === undefined ? null : openedSecret(sealer, secret)
    if (value === null)
      throw new ApiProblem(
        'conflict',
        `secrets.${variable} names ${JSON.stringify(name)}, which is not one of your secrets; set it ` +
          'first: PUT /secrets/{name}, or headroom secret set.',
      )
    values[variable] = value
  }
  return values
}
