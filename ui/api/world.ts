/**
 * The cluster that the pages show: the live one, or that of a simulation session, which has the same API at
 * another address.
 */
import { createContext, useContext } from 'solid-js'
import { LIVE_API } from './early-responses.ts'

export interface World {
  /** Base path of the API: `/api/v1`, or that of a session. */
  readonly apiBase: string
  /** Base path of the pages: empty, or `/simulator/<id>`. */
  readonly pathBase: string
  readonly mode: 'live' | 'sim'
  /**
   * User who opened the session and has at least the role operator in it; null for the live cluster and where
   * users have no names.
   */
  readonly owner: string | null
}

export const LIVE: World = { apiBase: LIVE_API, pathBase: '', mode: 'live', owner: null }

export const WorldContext = createContext<World>(LIVE)

export function useWorld(): World {
  return useContext(WorldContext)
}

/** Returns a function that gives the path of a page of this cluster. */
export function usePath(): (path: string) => string {
  const { pathBase } = useWorld()
  return (path) => `${pathBase}${path}`
}
