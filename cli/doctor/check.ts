export interface Check {
  readonly name: string
  /** warn: it matters for some uses only. */
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** What to do about it; null when there is nothing to do. */
  readonly todo: string | null
}

export function ok(name: string, detail: string): Check {
  return { name, verdict: 'ok', detail, todo: null }
}

export function warn(name: string, detail: string, todo: string | null): Check {
  return { name, verdict: 'warn', detail, todo }
}

export function fail(name: string, detail: string, todo: string): Check {
  return { name, verdict: 'fail', detail, todo }
}

/** What went wrong, in one line. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
