/** The target of a request at a gateway: /{owner}/{name}/…, where the rest is for the task. */

export interface EndpointTarget {
  readonly owner: string
  readonly name: string
  /** Path and query for the task, as they arrived. */
  readonly path: string
}

/** Longer ones are refused; servers of models accept less. */
const MAX_CHARACTERS = 16 * 1024
const TARGET = /^\/([^/?]+)\/([^/?]+)(\/[^?]*)?(\?.*)?$/

/** Null: it names no endpoint. Whole addresses (`http://host/…`) and `*` never do. */
export function endpointTargetIn(url: string): EndpointTarget | null {
  if (url.length > MAX_CHARACTERS || !/^[\x21\x22\x24-\x7e]+$/.test(url)) return null
  const [, owner, name, path = '/', query = ''] = TARGET.exec(url) ?? []
  if (owner === undefined || name === undefined) return null
  try {
    return { owner: decodeURIComponent(owner), name: decodeURIComponent(name), path: `${path}${query}` }
  } catch {
    return null
  }
}
