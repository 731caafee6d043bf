/** What is wrong with a field of an object of Kubernetes. */
export interface FieldFault {
  /**
   * Path in the notation of the API server: `spec.nodeName`, `metadata.annotations[headroom.dev/pod-vram]`.
   */
  readonly path: string
  /** The expected value, without the path. */
  readonly message: string
}

export type Parsed<T> =
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly faults: readonly FieldFault[] }

const LONGEST_QUOTE = 60

export function valid<T>(value: T): Parsed<T> {
  return { ok: true, value }
}

export function faulty(path: string, message: string): { ok: false; faults: readonly FieldFault[] } {
  return { ok: false, faults: [{ path, message }] }
}

export function annotationPath(name: string): string {
  return `metadata.annotations[${name}]`
}

export function faultText({ path, message }: FieldFault): string {
  return `${path}: ${message}`
}

/** A value in few characters: texts of strangers appear in logs and answers. */
export function quoted(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length <= LONGEST_QUOTE ? text : `${text.slice(0, LONGEST_QUOTE)}…`
}
