/** A task as it is typed in the form: the request, and the same as a command line. Pure. */
import type { TaskRequestBody } from '../../../controller/api/tasks/schema.ts'

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
}

export const NEW_DRAFT: Draft = {
  name: '',
  command: '',
  vramGib: '16',
  gpus: '1',
  priority: '2',
  noswap: false,
  groups: '',
}

/** Returns the request, or what is missing. */
export function requestOf(draft: Draft): { readonly body: TaskRequestBody } | { readonly missing: string } {
  const command = wordsOf(draft.command)
  const vramMib = Math.round(Number(draft.vramGib) * 1024)
  const gpuCount = Number(draft.gpus)
  if (command === null) return { missing: 'Close the quote in the command.' }
  if (draft.vramGib.trim() === '' || !Number.isFinite(vramMib) || vramMib < 1)
    return { missing: 'Enter the VRAM that the task needs on each GPU.' }
  if (!Number.isInteger(gpuCount) || gpuCount < 1) return { missing: 'Enter the number of GPUs.' }
  const groups = draft.groups.split(/[\s,]+/).filter((group) => group !== '')
  return {
    body: {
      ...(draft.name.trim() === '' ? {} : { name: draft.name.trim() }),
      // The preview needs no command.
      command: command.length === 0 ? ['command'] : command,
      vram_mib: vramMib,
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
    `--vram ${Math.round(Number(draft.vramGib) * 1024)}Mi`,
    ...(draft.gpus === '1' ? [] : [`--gpus ${draft.gpus}`]),
    ...(draft.priority === '2' ? [] : [`--priority P${draft.priority}`]),
    ...(draft.noswap ? ['--noswap'] : []),
    ...groups.map((group) => `--group ${quoted(group)}`),
    ...(draft.name.trim() === '' ? [] : [`--name ${quoted(draft.name.trim())}`]),
    '--',
    draft.command.trim() === '' ? 'COMMAND' : (wordsOf(draft.command) ?? []).map(quoted).join(' '),
  ].join(' ')
}

function quoted(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
