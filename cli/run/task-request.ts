/** Builds a submission from options and environment. An option takes precedence over its variable. */
import { readFileSync } from 'node:fs'
import type { TaskRequest } from '../../clients/typescript/client.ts'
import { VariableError, withClientVariables } from '../../clients/typescript/client-variables.ts'
import { UsageError } from '../../services/exit-codes.ts'
import { fileFailure } from '../command/file-failure.ts'
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
    throw new UsageError('--swap and --noswap cannot be used together')
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
    process.stderr.write(`headroom: options read from the environment: ${visible(taken.join(', '))}\n`)
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

export interface EnvironmentOptions {
  readonly env: readonly string[]
  readonly envFile: readonly string[]
  readonly secret: readonly string[]
}

/**
 * Returns the variables of the task: `NAME=VALUE`, or `NAME` alone for the value that it has here. A later
 * one replaces an earlier one, and options replace files.
 * @throws UsageError for an invalid name, or one that is not set here
 */
export function environmentOf(
  options: EnvironmentOptions,
  own: NodeJS.ProcessEnv = process.env,
): Pick<TaskRequest, 'env' | 'secrets'> {
  const lines = [
    ...options.envFile.flatMap((file) => linesOf(file).map((text) => ({ text, from: file }))),
    ...options.env.map((text) => ({ text, from: '--env' })),
  ]
  const env: Record<string, string> = {}
  for (const { text, from } of lines) {
    const { name, value } = assignmentIn(text, from)
    const set = value ?? own[name]
    if (set === undefined) throw new UsageError(`${from}: ${name} is not set here; write ${name}=VALUE`)
    env[name] = set
  }
  const secrets: Record<string, string> = {}
  for (const text of options.secret) {
    const { name, value } = assignmentIn(text, '--secret')
    secrets[name] = value ?? name
  }
  return {
    ...(lines.length === 0 ? {} : { env }),
    ...(options.secret.length === 0 ? {} : { secrets }),
  }
}

function assignmentIn(text: string, from: string): { readonly name: string; readonly value: string | null } {
  const at = text.indexOf('=')
  const name = at < 0 ? text : text.slice(0, at)
  if (!VARIABLE.test(name))
    throw new UsageError(`${from}: ${JSON.stringify(name)} is not a valid variable name`)
  return { name, value: at < 0 ? null : text.slice(at + 1) }
}

/** Without empty lines and comments. */
function linesOf(file: string): readonly string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--env-file ${file}: ${fileFailure(error) ?? String(error)}`, { cause: error })
  }
  return text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.trimStart().startsWith('#'))
}
