/** A guard, its program or its folder is invalid; one line that names which. */
export class GuardFault extends Error {
  override readonly name = 'GuardFault'
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}
