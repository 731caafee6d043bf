/** A request to the controller, whichever address it is sent to. */

export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Below /api/v1, with every segment encoded. */
  readonly path: string
  readonly query?: Query
  /** JSON, or bytes, which are sent as they are. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
  /** The request may be carried out twice without harm. Default: true for GET only. */
  readonly isRepeatable?: boolean
  readonly signal?: AbortSignal | undefined
}

/** Returns whether the request may be carried out twice without harm. */
export function isRepeatable({ method, isRepeatable: isMarked = method === 'GET' }: Call): boolean {
  return isMarked
}
