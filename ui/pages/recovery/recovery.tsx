/**
 * A store that went back to an earlier state: nodes that are ahead of it, attempts unknown to it, and the end
 * of the recovery.
 */
import { useQueryClient } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { RecoveryBody } from '../../../controller/api/tasks/attempt-schema.ts'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { plural } from '../../format/figures.ts'
import { recoverySentence } from '../../format/recovery.ts'
import { useCluster } from '../../state/cluster.tsx'
import { useRecovery } from '../../state/recovery.ts'
import { AheadNodes } from './ahead-nodes.tsx'
import { Attempts } from './attempts.tsx'
import { AwaitedNodes } from './awaited-nodes.tsx'
import { UnknownResults } from './unknown-results.tsx'
import { usePageTitle } from '../../state/page-title.ts'

export default function Recovery(): JSX.Element {
  usePageTitle(() => 'Recovery')
  const recovery = useRecovery()
  return (
    <div class="stack">
      <h1>Recovery</h1>
      <QueryState query={recovery}>
        {(state) => (
          <>
            <State state={state()} />
            <AheadNodes state={state()} />
            <Attempts count={state().quarantined_attempts} />
            <UnknownResults toEnd={state().result_unknown} />
          </>
        )}
      </QueryState>
    </div>
  )
}

function State(props: { readonly state: RecoveryBody }): JSX.Element {
  return (
    <section class="card" aria-label="State">
      <p role="status" class={props.state.placements_paused === null ? '' : 'bad'}>
        {recoverySentence(props.state)}
      </p>
      <Show when={props.state.recovery}>
        {(recovery) => (
          <>
            <p class="quiet">
              {recovery().reason === 'restored' ? 'Restored' : 'Loss of data accepted'}{' '}
              {clockTime(recovery().since)}.
            </p>
            <AwaitedNodes nodeIds={recovery().nodes_awaited} />
          </>
        )}
      </Show>
      <Finish recovery={props.state.recovery} />
    </section>
  )
}

function Finish(props: { readonly recovery: RecoveryBody['recovery'] }): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const finish = async (): Promise<void> => {
    await api.send('POST', '/recovery/finish')
    await queries.invalidateQueries({ queryKey: ['recovery'] })
  }
  const left = (): number => props.recovery?.nodes_awaited.length ?? 0
  return (
    <ConfirmedAction
      label="Finish recovery"
      title="Finish the recovery?"
      confirm="Finish recovery"
      isDanger
      whyNot={session.whyNot('admin') ?? (props.recovery === null ? 'No recovery is in progress.' : null)}
      run={finish}
    >
      <p>The controller immediately resumes placing tasks, requeueing tasks and marking tasks as lost.</p>
      <Show when={left() > 0}>
        <p>
          {plural(left(), 'known node has', 'known nodes have')} not reported.{' '}
          {left() === 1 ? 'Its' : 'Their'} tasks may then run a second time on another node, so first make
          sure that {left() === 1 ? 'this node is' : 'these nodes are'} switched off.
        </p>
      </Show>
      <p>
        A task that is no longer on its node is marked as lost, because its result is unknown. Quarantined
        attempts keep running until you adopt or stop them.
      </p>
    </ConfirmedAction>
  )
}
