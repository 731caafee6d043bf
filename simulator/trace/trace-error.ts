/**
 * Input that cannot be used: a line of a trace, a row of a source, an option. The message names file, line
 * and field, and what is wrong, in one line fit for a terminal. A person has to change the input, so the
 * command line answers it with exit code 2.
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
