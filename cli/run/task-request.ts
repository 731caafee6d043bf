/** Builds a submission from options and environment. An option takes precedence over its variable. */
import type { TaskRequest } from '../../clients/typescript/client.ts'
import { VariableError, withClientVariables } from '../../clients/typescript/client-variables.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { pairsOf, type ServerOption } from '../command/session.ts'
import { visible } from '../output/terminal-text.ts'

export interface DemandOptions extends ServerOption {
  /** MiB on each GPU. */
  readonly vram?: number
  readonly gpus?: number
  readonly noswap?: boolean
  readonly swap?: boolean
  readonly priority?: NonNullable<TaskRequest['priority']>
  readonly group: readonly string[]
  readonly name?: string
  readonly label: readonly string[]
  readonly exclusive?: boolean
}

/**
 * Prints to stderr which variables of the original client were used (REQUIRED_VRAM, PRIO, GPU_COUNT,
 * GPU_MODE).
 * @throws UsageError when options contradict each other or a variable is invalid
 */
export function demandOf(options: DemandOptions, env: NodeJS.ProcessEnv = process.env): TaskRequest {
  if (options.noswap === true && options.swap === true)
    throw new UsageError('--swap and --noswap contradict each other')
  const { request, taken } = fromEnvironment(
    {
      ...(options.vram === undefined ? {} : { vram_mib: options.vram }),
      ...(options.name === undefined ? {} : { name: options.name }),
      ...(options.gpus === undefined ? {} : { gpu_count: options.gpus }),
      ...(options.exclusive === true ? { gpu_mode: 'exclusive' as const } : {}),
      ...(options.noswap === true
        ? { noswap: 1 as const }
        : options.swap === true
          ? { noswap: 0 as const }
          : {}),
      ...(options.priority === undefined ? {} : { priority: options.priority }),
      ...(options.group.length === 0 ? {} : { groups: [...new Set(options.group)] }),
      labels: Object.fromEntries(pairsOf(options.label)),
    },
    env,
  )
  if (request.vram_mib === undefined && request.gpu_mode !== 'exclusive')
    throw new UsageError('--vram is required: VRAM on each GPU, for example --vram 8Gi')
  if (taken.length > 0)
    process.stderr.write(`headroom: taken from the environment: ${visible(taken.join(', '))}\n`)
  return { gpu_count: 1, gpu_mode: 'shared', noswap: 0, priority: 2, groups: [], ...request }
}

function fromEnvironment(
  given: TaskRequest,
  env: NodeJS.ProcessEnv,
): ReturnType<typeof withClientVariables<TaskRequest>> {
  try {
    return withClientVariables(given, env)
  } catch (error) {
    if (!(error instanceof VariableError)) throw error
    throw new UsageError(error.message, { cause: error })
  }
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Returns the command with its variables in front: `env` sets them, since a task has a command and no
 * environment.
 * @throws UsageError for an invalid name
 */
export function commandWithEnv(command: readonly string[], env: readonly string[]): readonly string[] {
  const pairs = pairsOf(env)
  for (const name of pairs.keys()) {
    if (!VARIABLE.test(name))
      throw new UsageError(`--env: ${JSON.stringify(name)} is not a valid variable name`)
  }
  if (pairs.size === 0) return command
  // What follows the assignments is the command, even if it contains an equals sign.
  const runs = command[0]?.includes('=') === true ? ['sh', '-c', 'exec "$@"', 'sh', ...command] : command
  return ['env', ...[...pairs].map(([name, value]) => `${name}=${value}`), ...runs]
}
