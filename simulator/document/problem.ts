/** A problem of a scenario file: position and message. */

export interface Problem {
  /** From 1. */
  readonly line: number
  /** From 1, in UTF-16 code units. */
  readonly column: number
  /** `fleet[0].gpu.vram_mib`; empty for the file as a whole. */
  readonly path: string
  readonly detail: string
}

/**
 * A scenario that cannot be used. The message has one line per problem; the command line exits with code 2.
 */
export class ScenarioError extends Error {
  override readonly name = 'ScenarioError'
  readonly file: string
  /** In the order of the file, at most MAX_PROBLEMS. */
  readonly problems: readonly Problem[]
  /** Number of problems that are not listed. */
  readonly unlisted: number

  constructor(file: string, problems: readonly Problem[], unlisted = 0, options?: ErrorOptions) {
    const lines = problems.map((problem) => lineOf(file, problem))
    if (unlisted > 0) lines.push(`${file}: and ${unlisted} more`)
    super(lines.join('\n'), options)
    this.file = file
    this.problems = problems
    this.unlisted = unlisted
  }
}

function lineOf(file: string, { line, column, path, detail }: Problem): string {
  return `${file}:${line}:${column}: ${path === '' ? '' : `${path}: `}${detail}`
}

export const MAX_PROBLEMS = 20

/** The path from the root of the file to a value, innermost last. Converted to text only for a problem. */
export interface Path {
  readonly parent: Path | null
  readonly key: string | number
}

function pathText(path: Path | null): string {
  if (path === null) return ''
  const parent = pathText(path.parent)
  if (typeof path.key === 'number') return `${parent}[${path.key}]`
  const key = path.key.length <= MAX_KEY_LENGTH ? path.key : `${path.key.slice(0, MAX_KEY_LENGTH)}…`
  if (!/^[A-Za-z_][\w-]*$/.test(key)) return `${parent}[${JSON.stringify(key)}]`
  return parent === '' ? key : `${parent}.${key}`
}

const MAX_KEY_LENGTH = 64

export interface Position {
  readonly line: number
  readonly column: number
}

/** Collects problems. Above MAX_PROBLEMS it only counts, so that a hostile file has bounded cost. */
export class ProblemList {
  readonly #found: Array<Problem & { readonly offset: number }> = []
  #count = 0
  readonly #positionOf: (offset: number) => Position

  constructor(positionOf: (offset: number) => Position) {
    this.#positionOf = positionOf
  }

  get count(): number {
    return this.#count
  }

  /** @param offset of the first character, in code units from the start of the text. */
  add(offset: number, path: Path | null, detail: string | (() => string)): void {
    this.#count++
    if (this.#found.length === MAX_PROBLEMS) return
    const text = typeof detail === 'string' ? detail : detail()
    this.#found.push({ ...this.#positionOf(offset), offset, path: pathText(path), detail: text })
  }

  /** Throws ScenarioError when anything was found. */
  throwIfAny(file: string): void {
    if (this.#count > 0) throw this.toError(file)
  }

  toError(file: string): ScenarioError {
    // The sort is stable: problems at one position stay in the order in which they were found.
    const sorted = this.#found.toSorted((a, b) => a.offset - b.offset)
    const problems = sorted.map(({ line, column, path, detail }) => ({ line, column, path, detail }))
    return new ScenarioError(file, problems, this.#count - problems.length)
  }
}
