/**
 * `.headroomignore`: which files of a folder are not uploaded. The patterns are those of `.gitignore`: the
 * last one that matches decides, `!` includes again, a trailing `/` matches folders only, and a `/` elsewhere
 * binds the pattern to the folder of the file.
 */

export const IGNORE_FILE = '.headroomignore'

/** Always ignored, unless the file includes them again. */
const ALWAYS = ['.git/', '__pycache__/', '.venv/', 'node_modules/', '.ipynb_checkpoints/']

interface Rule {
  readonly pattern: RegExp
  readonly isNegated: boolean
  readonly forFolders: boolean
}

export type IsIgnored = (path: string, isFolder: boolean) => boolean

export function ignoreRules(text: string): IsIgnored {
  const rules = [...ALWAYS, ...text.split(/\r?\n/)].map(ruleOf).filter((rule) => rule !== null)
  return (path, isFolder) =>
    rules.findLast(({ pattern, forFolders }) => (isFolder || !forFolders) && pattern.test(path))
      ?.isNegated === false
}

function ruleOf(line: string): Rule | null {
  const trimmed = line.trimEnd()
  if (trimmed === '' || trimmed.startsWith('#')) return null
  const isNegated = trimmed.startsWith('!')
  const glob = isNegated ? trimmed.slice(1) : trimmed
  const forFolders = glob.endsWith('/')
  const body = glob.replace(/\/+$/, '')
  const isBound = body.includes('/')
  const source = body.replace(/^\//, '').split('/').map(partOf).join('/')
  const pattern = new RegExp(
    `^${isBound ? '' : '(?:.*/)?'}${source.replaceAll('\u0000/', '(?:.*/)?').replaceAll('\u0000', '.*')}$`,
  )
  return { pattern, isNegated, forFolders }
}

/** Replaces `**` with NUL until the parts are joined. */
function partOf(part: string): string {
  if (part === '**') return '\u0000'
  return part
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]')
}
