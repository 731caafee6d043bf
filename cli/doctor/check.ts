export interface Check {
  readonly name: string
  /** warn: the finding matters for some uses only. */
  readonly verdict: 'ok' | 'warn' | 'fail'
  readonly detail: string
  /** What to do about it; null when nothing is to be done. */
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
