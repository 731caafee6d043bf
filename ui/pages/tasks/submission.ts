/** A task as it is typed in the form: the request, and the same as a command line. Pure. */
import type { TaskBody, TaskRequestBody } from '../../../controller/api/tasks/schema.ts'
import { TASK_TIMES } from '../../format/task-times.ts'

export interface Draft {
  readonly name: string
  readonly command: string
  /** Per GPU, as text: `16` is GiB. */
  readonly vramGib: string
  readonly gpus: string
  readonly priority: string
  readonly noswap: boolean
  /** Names of groups, separated by blanks. */
  readonly groups: string
  /** Fields without an input of their own, of a task that is cloned. */
  readonly more: MoreFields
}

const MORE_FIELDS = [
  'gpu_mode',
  'labels',
  ...TASK_TIMES.map(({ field }) => field),
  'on_node_loss',
  'max_requeues',
  'image',
  'ports',
  'wake_on_request',
  'workdir',
  'cwd',
  'mounts',
  'memory_mib',
  'cpus',
  'pids_limit',
  'vram_limit_mib',
  'idle_swap_out_seconds',
  'keep_warm',
  'swap_method',
  'swap_hooks',
  'swap_engine',
  'secrets',
] as const
export type MoreFields = Pick<TaskRequestBody, (typeof MORE_FIELDS)[number]>

export const NEW_DRAFT: Draft = {
  name: '',
  command: '',
  vramGib: '16',
  gpus: '1',
  priority: '2',
  noswap: false,
  groups: '',
  more: {},
}

/** The fields of a task, for another one like it. Values of its environment variables are not known here. */
export function draftOf(task: TaskBody): Draft {
  const more = Object.fromEntries(
    MORE_FIELDS.filter((field) => !isDefault(field, task[field])).map((field) => [field, task[field]]),
  ) as MoreFields
  return {
    name: task.name,
    command: (task.command ?? []).map(quoted).join(' '),
    vramGib: task.vram_mib === null ? '' : String(task.vram_mib / 1024),
    gpus: String(task.gpu_count),
    priority: String(task.priority),
    noswap: task.noswap === 1,
    groups: task.groups.join(' '),
    more,
  }
}

/** Whether the controller takes this value if the field is missing. */
function isDefault(field: (typeof MORE_FIELDS)[number], value: unknown): boolean {
  if (field === 'gpu_mode') return value === 'shared'
  if (field === 'on_node_loss') return value === 'wait'
  // null is not a limit, and a missing one is that of the cluster.
  if (field === 'max_requeues') return false
  return value === null || (typeof value === 'object' && Object.keys(value as object).length === 0)
}

/** Returns the request, or what is missing. */
export function requestOf(draft: Draft): { readonly body: TaskRequestBody } | { readonly missing: string } {
  const command = wordsOf(draft.command)
  const vramMib = Math.round(Number(draft.vramGib) * 1024)
  const gpuCount = Number(draft.gpus)
  if (command === null) return { missing: 'Close the open quote in the command.' }
  const isWhole = draft.more.gpu_mode === 'exclusive' && draft.vramGib.trim() === ''
  if (!isWhole && (draft.vramGib.trim() === '' || !Number.isFinite(vramMib) || vramMib < 1))
    return { missing: 'Enter the VRAM that the task needs on each GPU.' }
  if (!Number.isInteger(gpuCount) || gpuCount < 1) return { missing: 'Enter the number of GPUs.' }
  const groups = draft.groups.split(/[\s,]+/).filter((group) => group !== '')
  return {
    body: {
      ...draft.more,
      ...(draft.name.trim() === '' ? {} : { name: draft.name.trim() }),
      // The preview needs no command.
      command: command.length === 0 ? ['command'] : command,
      ...(isWhole ? {} : { vram_mib: vramMib }),
      gpu_count: gpuCount,
      priority: Number(draft.priority) as 0 | 1 | 2 | 3 | 4,
      noswap: draft.noswap ? 1 : 0,
      ...(groups.length === 0 ? {} : { groups }),
    },
  }
}

/**
 * Words of a command as a shell separates them: blanks, quotes and backslashes, and nothing else.
 * @returns null if a quote is not closed
 */
export function wordsOf(text: string): readonly string[] | null {
  const words: string[] = []
  let word: string | null = null
  let quote: string | null = null
  for (let at = 0; at < text.length; at++) {
    const char = text[at] as string
    if (quote !== null) {
      if (char === quote) quote = null
      else if (char === '\\' && quote === '"' && at + 1 < text.length) word += text[(at += 1)] as string
      else word += char
    } else if (char === '"' || char === "'") {
      quote = char
      word ??= ''
    } else if (char === '\\' && at + 1 < text.length) word = (word ?? '') + (text[(at += 1)] as string)
    else if (/\s/.test(char)) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + char
  }
  if (quote !== null) return null
  return word === null ? words : [...words, word]
}

/** The same submission with the command line. */
export function commandLineOf(draft: Draft): string {
  const groups = draft.groups.split(/[\s,]+/).filter((group) => group !== '')
  return [
    'headroom run --detach',
    ...(draft.vramGib.trim() === '' ? [] : [`--vram ${Math.round(Number(draft.vramGib) * 1024)}Mi`]),
    ...(draft.gpus === '1' ? [] : [`--gpus ${draft.gpus}`]),
    ...(draft.priority === '2' ? [] : [`--priority P${draft.priority}`]),
    ...(draft.noswap ? ['--noswap'] : []),
    ...groups.map((group) => `--group ${quoted(group)}`),
    ...(draft.name.trim() === '' ? [] : [`--name ${quoted(draft.name.trim())}`]),
    ...optionsOf(draft.more),
    '--',
    draft.command.trim() === '' ? 'COMMAND' : (wordsOf(draft.command) ?? []).map(quoted).join(' '),
  ].join(' ')
}

function quoted(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

function optionsOf(more: MoreFields): readonly string[] {
  const pairs = (all: Readonly<Record<string, string>> = {}) =>
    Object.entries(all).map(([name, value]) => `${name}=${value}`)
  const each = (option: string, values: readonly string[]) =>
    values.map((value) => `--${option} ${quoted(value)}`)
  const one = (option: string, value: string | number | null | undefined, unit = '') =>
    value === null || value === undefined ? [] : each(option, [`${value}${unit}`])
  return [
    ...(more.gpu_mode === 'exclusive' ? ['--exclusive'] : []),
    ...each('label', pairs(more.labels)),
    ...one('image', more.image),
    ...one('cwd', more.cwd),
    ...each('mount', more.mounts ?? []),
    ...one('memory', more.memory_mib, 'Mi'),
    ...one('cpus', more.cpus),
    ...one('pids-limit', more.pids_limit),
    ...one('vram-limit', more.vram_limit_mib, 'Mi'),
    ...TASK_TIMES.flatMap(({ field, option }) => one(option, more[field], 's')),
    ...one('on-node-loss', more.on_node_loss),
    ...(more.max_requeues === undefined ? [] : each('max-requeues', [String(more.max_requeues ?? 'none')])),
    ...each('port', (more.ports ?? []).map(portWords)),
    ...(more.wake_on_request === undefined || more.wake_on_request === null
      ? []
      : [more.wake_on_request ? '--wake-on-request' : '--no-wake-on-request']),
    ...one('idle-swap-out', more.idle_swap_out_seconds, 's'),
    ...(more.keep_warm === true ? ['--keep-warm'] : []),
    ...each('secret', pairs(more.secrets)),
  ]
}

function portWords({ name, target, protocol }: NonNullable<MoreFields['ports']>[number]): string {
  return `${name}=${target}${protocol === 'http' ? '/http' : ''}`
}

/** Fields that the command line above does not repeat. */
const NOT_ON_COMMAND_LINE = ['workdir', 'swap_method', 'swap_hooks', 'swap_engine'] as const

export function notOnCommandLine({ more }: Draft): readonly string[] {
  return NOT_ON_COMMAND_LINE.filter((field) => more[field] !== undefined)
}
