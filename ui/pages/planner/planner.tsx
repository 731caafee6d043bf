/**
 * Recommends an overcommit percentage: sweeps over a workload, and their results. Nothing here changes the
 * live cluster.
 */
import { useSearchParams } from '@solidjs/router'
import { type JSX } from 'solid-js'
import { ComparedSimulations } from './compared-simulations.tsx'
import { SimulationList } from './simulation-list.tsx'
import { StartCards } from './start-cards.tsx'
import { SweepForm } from './sweep-form.tsx'

export default function Planner(): JSX.Element {
  const [search, setSearch] = useSearchParams<{ compare?: string }>()
  const picked = (): readonly string[] => (search.compare ?? '').split(',').filter((id) => id !== '')
  const pick = (ids: readonly string[]): void =>
    setSearch({ compare: ids.length === 0 ? null : ids.join(',') }, { replace: true, scroll: false })
  return (
    <div class="stack">
      <h1>Planner</h1>
      <p class="quiet">
        How much VRAM can be overcommitted? The planner runs a workload in virtual time at several percentages
        and with several seeds, and recommends a percentage. Nothing here changes the live cluster.
      </p>
      <StartCards />
      <SweepForm />
      <SimulationList picked={picked()} onPick={pick} />
      <ComparedSimulations ids={picked()} />
    </div>
  )
}
