/** The status of a node as a chip, with the time of the last contact if the node does not respond. */
import { Show, type JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { Ago } from '../../components/ago.tsx'
import { Chip } from '../../design/chip.tsx'
import { statusWords } from '../../format/nodes.ts'
import { useIsAhead } from '../../state/recovery.ts'

export function NodeStatus(props: { readonly node: NodeBody }): JSX.Element {
  const isAhead = useIsAhead()
  const isUp = (): boolean => props.node.status === 'up'
  return (
    <>
      <Chip tone={isUp() ? (props.node.cordoned ? 'pending' : 'running') : 'failed'}>
        {statusWords(props.node, isAhead(props.node.node_id))}
      </Chip>
      <Show when={!isUp()}>
        <span class="quiet">
          , last seen <Ago at={props.node.last_seen_at} />
        </span>
      </Show>
    </>
  )
}
