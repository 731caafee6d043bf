/**
 * States of a node that an operator resolves: ahead of the store, cordoned automatically, quarantined
 * attempts.
 */
import { A } from '@solidjs/router'
import { Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { usePath } from '../../api/world.ts'
import { clockTime } from '../../format/clock.ts'
import { whole } from '../../format/figures.ts'
import { useIsAhead } from '../../state/recovery.ts'

export function NodeNotices(props: { readonly node: NodeBody }): JSX.Element {
  const isAhead = useIsAhead()
  return (
    <>
      <Show when={isAhead(props.node.node_id)}>
        <section class="card" aria-label="Ahead of the store">
          <h2>Ahead of the store</h2>
          <p>
            This node has events that are missing from the store. It receives no commands, and its tasks keep
            running. <ToRecovery />
          </p>
        </section>
      </Show>
      <Show when={props.node.auto_cordon}>{(closed) => <AutoCordon closed={closed()} />}</Show>
      <Show when={props.node.quarantined_attempts > 0}>
        <section class="card" aria-label="Quarantine">
          <h2>Quarantined attempts: {whole(props.node.quarantined_attempts)}</h2>
          <p>
            These attempts run on this node but are not in the store. They keep their VRAM until you adopt or
            stop them. <ToRecovery />
          </p>
        </section>
      </Show>
    </>
  )
}

function ToRecovery(): JSX.Element {
  const path = usePath()
  return <A href={path('/recovery')}>Open recovery</A>
}

function AutoCordon(props: { readonly closed: NonNullable<NodeBody['auto_cordon']> }): JSX.Element {
  return (
    <section class="card" aria-label="Automatic cordon">
      <h2>Cordoned by the controller</h2>
      <p class="text">
        The node failed to start tasks. Last reason ({props.closed.code}): {props.closed.reason}
      </p>
      <p class="quiet">
        Cordoned since {clockTime(props.closed.since)}.{' '}
        {props.closed.is_trial_open
          ? 'The next task that fits is a trial start; if it starts, the node is uncordoned.'
          : `Next trial start: after ${clockTime(props.closed.next_trial_at)}.`}{' '}
        Failed trial starts: {whole(props.closed.failed_trials)}. Uncordon the node to accept tasks
        immediately.
      </p>
    </section>
  )
}
