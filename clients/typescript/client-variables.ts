/**
 * Environment variables of the command line and the client module: the address of the controller, and fields
 * missing from a submission. HEADROOM_… are Headroom's own; each replaces a variable of the specification
 * that means the same. REQUIRED_VRAM, PRIO, GPU_COUNT and GPU_MODE are those of the original client. An
 * explicit value takes precedence over all of them.
 */
import type { Mib } from '../../protocol/units.ts'
import { parseVram, VRAM_FORMAT } from './vram-size.ts'

export interface SubmissionDefaults {
  /** Per GPU. */
  readonly vram_mib?: Mib
  readonly gpu_count?: number
  readonly gpu_mode?: 'shared' | 'exclusive'
  readonly priority?: 0 | 1 | 2 | 3 | 4
  readonly noswap?: 0 | 1
  readonly groups?: readonly string[]
}

/**
 * Fields that the original client's variables fill in. Their use is reported, because such generic names may
 * be set for another purpose.
 */
const ORIGINAL_VARIABLES = {
  vram_mib: 'REQUIRED_VRAM',
  priority: 'PRIO',
  gpu_count: 'GPU_COUNT',
  gpu_mode: 'GPU_MODE',
} as const satisfies Partial<Record<keyof SubmissionDefaults, string>>

export class VariableError extends Error {
  override readonly name = 'VariableError'
}

export type Environment = Readonly<Record<string, string | undefined>>

/** Same limit as in controller/api/tasks/schema.ts. */
const MAX_GPUS = 1024
const MAX_SHOWN = 200

/** Names of one setting; the first that is set applies. */
type Names = readonly [string, ...(readonly string[])]

export const URL_VARIABLES: Names = ['HEADROOM_URL', 'VENDOR_CONTROLLER_URL']

/** The first of these variables that is set and not blank; null: none is. */
export function firstSet(
  names: Names,
  env: Environment,
): { readonly name: string; readonly text: string } | null {
  for (const name of names) {
    const text = env[name]?.trim() ?? ''
    if (text !== '') return { name, text }
  }
  return null
}

/**
 * Returns the submission with its missing fields filled in from the environment; `taken` names the variables
 * of the original client that were used. Reads a variable only if its field is missing, so a bad value
 * without effect is not an error.
 * @throws VariableError
 */
export function withClientVariables<T extends SubmissionDefaults>(
  request: T,
  env: Environment,
): { readonly request: T; readonly taken: readonly string[] } {
  const found: { -readonly [Field in keyof SubmissionDefaults]?: unknown } = {}
  const taken: string[] = []
  for (const field of Object.keys(READERS) as (keyof SubmissionDefaults)[]) {
    if (request[field] !== undefined) continue
    const { variables, range, read } = READERS[field]
    const given = firstSet(variables, env)
    if (given === null) continue
    const { name, text } = given
    const value = read(text)
    if (value === undefined)
      throw new VariableError(`${name} is ${JSON.stringify(text.slice(0, MAX_SHOWN))}; it must be ${range}`)
    found[field] = value
    if (field in ORIGINAL_VARIABLES) taken.push(`${name}=${text}`)
  }
  return { request: { ...request, ...(found as Partial<T>) }, taken }
}

interface Reader {
  readonly variables: Names
  readonly range: string
  /** Undefined: not a valid value. */
  readonly read: (text: string) => unknown
}

const READERS: Readonly<Record<keyof SubmissionDefaults, Reader>> = {
  vram_mib: {
    variables: [ORIGINAL_VARIABLES.vram_mib],
    range: VRAM_FORMAT,
    read: (text) => parseVram(text) || undefined,
  },
  priority: {
    variables: [ORIGINAL_VARIABLES.priority],
    range: 'a whole number from 0 (highest) to 4',
    read: (text) => wholeOf(text, 0, 4),
  },
  gpu_count: {
    variables: [ORIGINAL_VARIABLES.gpu_count],
    range: `a whole number from 1 to ${MAX_GPUS}`,
    read: (text) => wholeOf(text, 1, MAX_GPUS),
  },
  gpu_mode: {
    variables: [ORIGINAL_VARIABLES.gpu_mode],
    range: 'shared or exclusive',
    read: (text) => (text === 'shared' || text === 'exclusive' ? text : undefined),
  },
  noswap: {
    variables: ['HEADROOM_SWAP_FROM_VRAM', 'VENDOR_SWAP_FROM_VRAM'],
    range: '1 (swappable) or 0',
    read: (text) => (text === '1' ? 0 : text === '0' ? 1 : undefined),
  },
  groups: {
    variables: ['HEADROOM_GROUPS', 'CONTROLLER_NODE_GROUP_IDS'],
    range: 'group IDs, separated by commas',
    read: groupsOf,
  },
}

function wholeOf(text: string, min: number, max: number): number | undefined {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : NaN
  return value >= min && value <= max ? value : undefined
}

function groupsOf(text: string): readonly string[] | undefined {
  const groups = text.split(',').map((group) => group.trim())
  return groups.includes('') ? undefined : [...new Set(groups)]
}
