/**
 * Somebody else changed the configuration while something is typed here: who, what, and two ways on. Nothing
 * typed is lost by itself.
 */
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { ConfigBody, RevisionPage } from '../../../controller/api/schema/config.ts'
import { useCluster } from '../../state/cluster.tsx'
import { differences, shown } from './fields.ts'

export interface ConflictProps {
  readonly before: ConfigBody
  readonly now: ConfigBody
  readonly onGoOn: () => void
  readonly onForget: () => void
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
      <h2>Somebody else has changed the configuration</h2>
      <p>
        Revision {props.now.revision}, by{' '}
        {revisions.data?.items[0]?.author ?? 'somebody who did not have to say his name'}. What you typed is
        kept.
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
        <button onClick={() => props.onGoOn()}>Go on from there with what I typed</button>
        <button onClick={() => props.onForget()}>Forget what I typed</button>
      </div>
    </section>
  )
}
