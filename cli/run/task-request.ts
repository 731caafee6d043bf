/** From options and environment to a submission. A flag wins over its variable. */
import type { TaskRequest } from '../client/client.ts'
import { UsageError } from '../exit-codes.ts'
import { pairsOf, type ServerOption } from '../operator/session.ts'

export interface DemandOptions extends ServerOption {
  /** MiB on each GPU. */
  readonly vram?: number
  readonly gpus: number
  readonly noswap?: boolean
  readonly swap?: boolean
  readonly priority: NonNullable<TaskRequest['priority']>
  readonly group: readonly string[]
  readonly name?: string
  readonly label: readonly string[]
  readonly exclusive?: boolean
}

/** @throws UsageError when options contradict each other or a variable cannot be used. */
export function demandOf(options: DemandOptions, env: NodeJS.ProcessEnv = process.env): TaskRequest {
  if (options.vram === undefined && options.exclusive !== true)
    throw new UsageError('--vram is missing: how much VRAM on each GPU? (--vram 8Gi)')
  const groups = options.group.length > 0 ? options.group : groupsOf(env['CONTROLLER_NODE_GROUP_IDS'] ?? '')
  return {
    ...(options.vram === undefined ? {} : { vram_mib: options.vram }),
    ...(options.name === undefined ? {} : { name: options.name }),
    gpu_count: options.gpus,
    gpu_mode: options.exclusive === true ? 'exclusive' : 'shared',
    noswap: noswapOf(options, env['VENDOR_SWAP_FROM_VRAM'] ?? ''),
    priority: options.priority,
    groups: [...new Set(groups)],
    labels: Object.fromEntries(pairsOf(options.label)),
  }
}

function noswapOf({ noswap, swap }: DemandOptions, variable: string): 0 | 1 {
  if (noswap === true && swap === true) throw new UsageError('--swap and --noswap contradict each other')
  if (noswap === true) return 1
  if (swap === true || variable === '' || variable === '1') return 0
  if (variable === '0') return 1
  throw new UsageError(`VENDOR_SWAP_FROM_VRAM is ${JSON.stringify(variable.slice(0, 200))}; it must be 1 (swappable) or 0`)
}

function groupsOf(variable: string): readonly string[] {
  if (variable.trim() === '') return []
  const groups = variable.split(',').map((group) => group.trim())
  if (groups.includes(''))
    throw new UsageError(`CONTROLLER_NODE_GROUP_IDS is ${JSON.stringify(variable.slice(0, 200))}; it must be groups, separated by commas`)
  return groups
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * The command with its variables in front of it: `env` sets them, since a task has a command and no environment of its own.
 * @throws UsageError when a name is none.
 */
export function commandWithEnv(command: readonly string[], env: readonly string[]): readonly string[] {
  const pairs = pairsOf(env)
  for (const name of pairs.keys()) {
    if (!VARIABLE.test(name)) throw new UsageError(`--env: ${JSON.stringify(name)} is no name of a variable`)
  }
  if (pairs.size === 0) return command
  // What follows the assignments is the command, even when it holds an equals sign itself.
  const runs = command[0]?.includes('=') === true ? ['sh', '-c', 'exec "$@"', 'sh', ...command] : command
  return ['env', ...[...pairs].map(([name, value]) => `${name}=${value}`), ...runs]
}
