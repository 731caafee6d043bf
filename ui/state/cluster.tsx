/** Shared state of all pages of one cluster: client, feed, response cache and user session. */
import { QueryClient, QueryClientProvider } from '@tanstack/solid-query'
import {
  createContext,
  createEffect,
  createRoot,
  createSignal,
  on,
  untrack,
  useContext,
  type Accessor,
  type JSX,
} from 'solid-js'
import { ApiClient, isFinal } from '../api/client.ts'
import { createFeed, type Feed } from '../api/feed.ts'
import { useWorld } from '../api/world.ts'
import { opaque, refreshFrom } from './response-cache.ts'
import { createSession, type Session } from './session.ts'

export interface ClusterState {
  readonly api: ApiClient
  readonly feed: Feed
  readonly session: Session
  /** Clock of this cluster, milliseconds since the epoch; in a session, the virtual clock. */
  readonly now: Accessor<number>
}

const [wallClock, setWallClock] = createRoot(() => createSignal(Date.now()))
setInterval(() => setWallClock(Date.now()), 1_000)

/** The current time, updated once a second, for everything that shows an age. */
export const now: Accessor<number> = wallClock

const ClusterContext = createContext<ClusterState>()

export function useCluster(): ClusterState {
  const state = useContext(ClusterContext)
  if (state === undefined) throw new Error('this page is not inside a cluster')
  return state
}

export function ClusterProvider(props: { readonly children: JSX.Element }): JSX.Element {
  const world = useWorld()
  const { apiBase } = world
  const api = new ApiClient(apiBase)
  const feed = createFeed(apiBase)
  const queries = new QueryClient({
    // The feed reports changes; data stays visible while it is read again, and after a failure.
    defaultOptions: {
      queries: {
        staleTime: 30_000,
        retry: (failures: number, error: Error) => failures < 1 && !isFinal(error),
        refetchOnWindowFocus: false,
        placeholderData: (before: unknown) => before,
        reconcile: (_before: unknown, answer: unknown) => opaque(answer),
      },
    },
  })
  const session = createSession(world)
  refreshFrom(feed, queries)
  // A token was revoked or has expired while the page was open: the user must sign in again.
  createEffect(
    on(feed.status, (status) => {
      const wasKnown = (untrack(session.body)?.caller ?? null) !== null
      if (status === 'refused' && wasKnown) void session.refresh().catch(() => {})
    }),
  )
  // After a reconnect, failed requests are repeated, including those that no event refreshes.
  createEffect(
    on(feed.status, (status) => {
      if (status === 'live')
        void queries.refetchQueries({ type: 'active', predicate: ({ state }) => state.status === 'error' })
    }),
  )
  const clock = (): number => {
    const at = feed.summary()?.at
    return world.mode === 'live' || at === undefined ? now() : Date.parse(at)
  }
  return (
    <ClusterContext.Provider value={{ api, feed, session, now: clock }}>
      <QueryClientProvider client={queries}>{props.children}</QueryClientProvider>
    </ClusterContext.Provider>
  )
}
