/** The alarms that hold, above every page; nothing while all is well. */
import { For, Show, type JSX } from 'solid-js'
import { useCluster } from '../state/cluster.tsx'

export function Alarms(): JSX.Element {
  const { feed } = useCluster()
  const alarms = () => feed.summary()?.alarms ?? []
  return (
    <Show when={alarms().length > 0}>
      <section class="card" aria-label="Alarms" id="alarms" role="alert">
        <For each={alarms()}>
          {(alarm) => (
            <p>
              <strong class="bad">{alarm.code}</strong> {alarm.detail}
              <Show when={alarm.nodes.length > 0}> Nodes: {alarm.nodes.join(', ')}.</Show>
            </p>
          )}
        </For>
      </section>
    </Show>
  )
}
