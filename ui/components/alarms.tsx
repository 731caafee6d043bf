/** The active alarms, above every page; nothing is shown without alarms. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { SummaryBody } from '../../controller/api/observe/summary-schema.ts'
import { usePath } from '../api/world.ts'
import { useCluster } from '../state/cluster.tsx'
import { Prose } from './prose.tsx'

type AlarmCode = SummaryBody['alarms'][number]['code']

const RECOVERY = { path: '/recovery', words: 'Open recovery' }

/** The page that resolves an alarm, or lists what it concerns. */
const PLACES: Partial<Readonly<Record<AlarmCode, { readonly path: string; readonly words: string }>>> = {
  STORE_BEHIND: RECOVERY,
  RECOVERY,
  MASS_SILENCE: { path: '/nodes?status=silent', words: 'Show these nodes' },
  QUARANTINE: RECOVERY,
  AUTO_CORDONED: { path: '/nodes?status=auto_cordoned', words: 'Show these nodes' },
  START_REFUSED: { path: '/tasks?tab=pending&reason=START_REFUSED', words: 'Show these tasks' },
}

export function Alarms(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const alarms = () => feed.summary()?.alarms ?? []
  return (
    <Show when={alarms().length > 0}>
      <section class="card" aria-label="Alarms" id="alarms" role="alert">
        <For each={alarms()}>
          {(alarm) => (
            <p>
              <strong class="bad">{alarm.code}</strong> <Prose text={alarm.detail} />
              <Show when={alarm.nodes.length > 0}> Nodes: {alarm.nodes.join(', ')}.</Show>
              <Show when={PLACES[alarm.code]}>
                {(place) => (
                  <>
                    {' '}
                    <A href={path(place().path)}>{place().words}</A>
                  </>
                )}
              </Show>
            </p>
          )}
        </For>
      </section>
    </Show>
  )
}
