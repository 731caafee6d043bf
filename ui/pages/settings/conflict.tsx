/**
 * Another user changed the configuration during editing: the author, the differences, and two ways to
 * continue. Entered values are kept.
 */
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { ConfigBody, RevisionPage } from '../../../controller/api/config/schema.ts'
import { useCluster } from '../../state/cluster.tsx'
import { differences, shown } from '../../format/config-fields.ts'

export interface ConflictProps {
  readonly before: ConfigBody
  readonly now: ConfigBody
  readonly onKeep: () => void
  readonly onDiscard: () => void
}

export function Conflict(props: ConflictProps): JSX.Element {
  const { api } = useCluster()
  const revisions = useQuery(() => ({
    queryKey: ['config', 'revisions', props.now.revision],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<RevisionPage>('/config/revisions', { limit: 1 }, signal),
  }))
  return (
    <section class="card" role="alert" aria-label="Conflict">
      <h2>The configuration was changed by another user</h2>
      <p>
        Revision {props.now.revision}, by {revisions.data?.items[0]?.author ?? 'an unnamed user'}. Your input
        is kept.
      </p>
      <ul>
        <For each={differences(props.before, props.now)}>
          {({ name, before, after }) => (
            <li>
              <code class="text">{name}</code>: {shown(before)} → {shown(after)}
            </li>
          )}
        </For>
      </ul>
      <div class="row">
        <button onClick={() => props.onKeep()}>Keep my changes</button>
        <button onClick={() => props.onDiscard()}>Discard changes</button>
      </div>
    </section>
  )
}
