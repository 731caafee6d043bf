/**
 * Which cluster the pages speak of: the live one, or that of a simulation session, with the same interface
 * under another address.
 */
import { createContext, useContext } from 'solid-js'
import { LIVE_API } from './live-api.ts'

export interface World {
  /** Where the interface begins: `/api/v1`, or that of a session. */
  readonly apiBase: string
  /** Where the pages begin: empty, or `/simulator/<id>`. */
  readonly pathBase: string
  readonly mode: 'live' | 'sim'
  /**
   * Who has opened the session, and has at least the role operator in it; null for the live cluster, and
   * where nobody has a name.
   */
  readonly owner: string | null
}

export const LIVE: World = { apiBase: LIVE_API, pathBase: '', mode: 'live', owner: null }

export const WorldContext = createContext<World>(LIVE)

export function useWorld(): World {
  return useContext(WorldContext)
}

/** The path of a page of this cluster. */
export function usePath(): (path: string) => string {
  const { pathBase } = useWorld()
  return (path) => `${pathBase}${path}`
}
