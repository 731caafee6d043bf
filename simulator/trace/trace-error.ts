/**
 * Unusable input: a line of a trace, a row of a source, an option. The message is one line with file, line,
 * field and problem. The user must change the input, so the command line exits with code 2.
 */
export class TraceError extends Error {
  readonly file: string | null
  readonly line: number | null
  readonly field: string | null

  constructor(
    where: { file?: string; line?: number; field?: string },
    problem: string,
    options?: ErrorOptions,
  ) {
    const place =
      where.file === undefined ? '' : `${where.file}${where.line === undefined ? '' : `:${where.line}`}: `
    super(`${place}${where.field === undefined ? '' : `${where.field}: `}${problem}`, options)
    this.name = 'TraceError'
    this.file = where.file ?? null
    this.line = where.line ?? null
    this.field = where.field ?? null
  }
}
