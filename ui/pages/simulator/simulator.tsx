/** Simulated clusters: open sessions, new sessions from scenarios, and exercises. */
import { useQuery } from '@tanstack/solid-query'
import type { JSX } from 'solid-js'
import type { Static } from 'typebox'
import type { SimulationPageSchema } from '../../../controller/api/simulations/schema.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Exercises } from './exercises.tsx'
import { NewSession } from './new-session.tsx'
import { Sessions } from './sessions.tsx'

export default function Simulator(): JSX.Element {
  const { api } = useCluster()
  const simulations = useQuery(() => ({
    queryKey: ['simulations'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<Static<typeof SimulationPageSchema>>('/simulations', {}, signal),
    refetchInterval: 5_000,
  }))
  return (
    <div class="stack">
      <h1>Simulator</h1>
      <p>
        Each session is a simulated cluster in virtual time, with the same controller and the same pages.
        Nothing in a session affects the live cluster.
      </p>
      <Sessions query={simulations} />
      <Exercises />
      <NewSession />
    </div>
  )
}
