/** The reasons why tasks wait, counted, each linked to these tasks. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import { usePath } from '../../api/world.ts'
import { whole } from '../../format/figures.ts'
import { reasonWords } from '../../format/reasons.ts'
import { useCluster } from '../../state/cluster.tsx'

export function WaitingReasons(): JSX.Element {
  const { feed } = useCluster()
  const path = usePath()
  const pending = () => feed.summary()?.pending_by_reason
  return (
    <section class="card" aria-label="Wait reasons">
      <h2>Wait reasons</h2>
      <Show
        when={(pending()?.reasons.length ?? 0) > 0}
        fallback={<p class="quiet">{pending() === undefined ? 'Loading…' : 'No pending tasks.'}</p>}
      >
        <table>
          <tbody>
            <For each={pending()?.reasons}>
              {({ reason, tasks }) => (
                <tr>
                  <td>
                    <A href={path(`/tasks?tab=pending&reason=${reason}`)}>{reasonWords(reason)}</A>
                  </td>
                  <td class="number">
                    {pending()?.is_estimate === true ? '≈ ' : ''}
                    {whole(tasks)}
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
        <Show when={pending()?.is_estimate === true}>
          <p class="quiet">
            Estimated for all {whole(pending()?.of)} pending tasks from an even sample of{' '}
            {whole(pending()?.counted)}.
          </p>
        </Show>
      </Show>
    </section>
  )
}
