/** Buttons: cordon, uncordon and drain. */
import { useQueryClient } from '@tanstack/solid-query'
import { createSignal, Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { pathSegment } from '../../api/client.ts'
import type { Query } from '../../api/query-text.ts'
import { ConfirmedAction } from '../../design/confirm-dialog.tsx'
import { whole } from '../../format/figures.ts'
import { typedWhole } from '../../format/whole-number.ts'
import { useCluster } from '../../state/cluster.tsx'

const MAX_DELAY_S = 604_800

export function NodeActions(props: { readonly node: NodeBody }): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const [isRequeueing, setRequeueing] = createSignal(false)
  const [after, setAfter] = createSignal('0')
  const tasks = (): number => new Set(props.node.gpus.flatMap(({ task_ids: ids }) => ids)).size
  const operator = (): string | null => session.whyNot('operator')
  const post = async (action: string, query: Query = {}): Promise<void> => {
    await api.send('POST', `/nodes/${pathSegment(props.node.node_id)}/${action}`, { query })
    await queries.invalidateQueries({ queryKey: ['nodes'] })
  }
  const drain = async (): Promise<void> => {
    if (!isRequeueing()) return post('drain')
    const typed = typedWhole(after(), 0, MAX_DELAY_S)
    if (!typed.ok) throw new Error(typed.problem)
    return post('drain', { requeue: true, after_seconds: typed.value })
  }
  return (
    <div class="row">
      <Show
        when={props.node.cordoned || props.node.drain !== null || props.node.auto_cordon !== null}
        fallback={
          <ConfirmedAction
            label="Cordon"
            title={`Cordon ${props.node.name}?`}
            confirm="Cordon"
            whyNot={operator()}
            run={() => post('cordon')}
          >
            <p>The node receives no new tasks. Its current tasks keep running.</p>
          </ConfirmedAction>
        }
      >
        <ConfirmedAction
          label="Uncordon"
          title={`Uncordon ${props.node.name}?`}
          confirm="Uncordon"
          whyNot={operator()}
          run={() => post('uncordon')}
        >
          <p>The node receives new tasks again{props.node.drain === null ? '' : ', and the drain ends'}.</p>
        </ConfirmedAction>
      </Show>
      <ConfirmedAction
        label="Drain"
        title={`Drain ${props.node.name}?`}
        confirm="Drain"
        isDanger={isRequeueing()}
        whyNot={operator() ?? (props.node.drain === null ? null : 'The node is already draining.')}
        run={drain}
      >
        <p>
          The node receives no new tasks until it is uncordoned. Its current tasks ({whole(tasks())}) keep
          running until they end.
        </p>
        <p>
          <label>
            <input
              type="checkbox"
              checked={isRequeueing()}
              onChange={(event) => setRequeueing(event.currentTarget.checked)}
            />{' '}
            Move tasks that may be requeued: they are stopped and restarted on another node
          </label>
        </p>
        <Show when={isRequeueing()}>
          <p>
            <label>
              Delay before moving (s){' '}
              <input
                inputMode="numeric"
                size="8"
                value={after()}
                onInput={(event) => setAfter(event.currentTarget.value)}
              />
            </label>
          </p>
        </Show>
      </ConfirmedAction>
    </div>
  )
}
