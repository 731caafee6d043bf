/** The groups: their nodes, and what they take from the common pool. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type { GroupBody, GroupPageBody, GroupSumsBody } from '../../../controller/api/schema/group.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { mib, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { GroupEditor } from './group-editor.tsx'

/** Each opening is a separate object, also for the same group. A null group is a new one. */
interface OpenedEditor {
  readonly group: GroupBody | null
}

export default function Groups(): JSX.Element {
  const { api, session } = useCluster()
  const [opened, setOpened] = createSignal<OpenedEditor | null>(null)
  // An editor closes after its request; by then another one may be open.
  const close = (editor: OpenedEditor): void => void setOpened((now) => (now === editor ? null : now))
  const groups = useQuery(() => ({
    queryKey: ['groups'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<GroupPageBody>('/groups', {}, signal),
    refetchInterval: 5_000,
  }))
  const whyNot = () => session.whyNot('operator')
  return (
    <div class="stack">
      <h1>Groups</h1>
      <p class="quiet">
        Nodes without a group form the common pool, which takes all tasks without groups. A task that names
        groups runs only on their members.
      </p>
      <p class="row">
        <button
          onClick={() => setOpened({ group: null })}
          disabled={whyNot() !== null}
          title={whyNot() ?? undefined}
        >
          New group
        </button>
        <span class="quiet">{whyNot() ?? ''}</span>
      </p>
      <Show when={opened()} keyed>
        {(editor) => <GroupEditor group={editor.group} onDone={() => close(editor)} />}
      </Show>
      <QueryState query={groups}>
        {(page) => (
          <>
            <Show when={page().items.length === 0}>
              <p class="quiet">No groups yet: all nodes are in the common pool.</p>
            </Show>
            <div class="scroll" tabindex="0" role="group" aria-label="Groups">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Group</th>
                    <th scope="col" class="number">
                      Nodes
                    </th>
                    <th scope="col" class="number">
                      GPUs
                    </th>
                    <th scope="col" class="number">
                      Physical
                    </th>
                    <th scope="col" class="number">
                      Allocated
                    </th>
                    <th scope="col" class="number">
                      Schedulable
                    </th>
                    <th scope="col">
                      <span class="visually-hidden">Edit</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  <For each={page().items.map(({ id }) => id)}>
                    {(id) => (
                      <Show when={page().items.find((group) => group.id === id)}>
                        {(group) => (
                          <GroupRow
                            group={group()}
                            whyNot={whyNot()}
                            onEdit={() => setOpened({ group: group() })}
                          />
                        )}
                      </Show>
                    )}
                  </For>
                  <tr>
                    <td>
                      <em>common pool</em>
                    </td>
                    <Figures sums={page().common_pool} named={null} />
                    <td />
                  </tr>
                </tbody>
              </table>
            </div>
          </>
        )}
      </QueryState>
    </div>
  )
}

/** Rows are kept by group id when the list is read again, so that the button keeps the focus. */
function GroupRow(props: {
  readonly group: GroupBody
  readonly whyNot: string | null
  readonly onEdit: () => void
}): JSX.Element {
  const path = usePath()
  return (
    <tr>
      <td class="text">
        <strong>{props.group.id}</strong>{' '}
        <A href={path(`/tasks?tab=all&group=${pathSegment(props.group.id)}`)}>tasks</A>
        <div class="quiet">{props.group.description}</div>
        <MemberLinks group={props.group} />
      </td>
      <Figures sums={props.group.sums} named={props.group.node_ids.length} />
      <td>
        <button
          onClick={() => props.onEdit()}
          disabled={props.whyNot !== null}
          aria-label={`Edit ${props.group.id}`}
        >
          Edit…
        </button>
      </td>
    </tr>
  )
}

/** The first members by name, and a link to the page with all of them. */
function MemberLinks(props: { readonly group: GroupBody }): JSX.Element {
  const path = usePath()
  const more = (): number => props.group.sums.nodes - props.group.first_nodes.length
  return (
    <div>
      <For each={props.group.first_nodes}>
        {(node, index) => (
          <>
            {index() > 0 ? ', ' : ''}
            <A href={path(`/nodes/${pathSegment(node.node_id)}`)}>{node.name}</A>
          </>
        )}
      </For>
      <Show when={more() > 0}>
        {' '}
        <A href={path(`/nodes?group=${pathSegment(props.group.id)}`)}>and {whole(more())} more</A>
      </Show>
    </div>
  )
}

/** @param props.named number of ids in the group; null for the common pool */
function Figures(props: { readonly sums: GroupSumsBody; readonly named: number | null }): JSX.Element {
  const absent = (): number => (props.named ?? props.sums.nodes) - props.sums.nodes
  return (
    <>
      <td class="number">
        {whole(props.sums.nodes)}
        <Show when={absent() > 0}>
          <span class="quiet"> and {whole(absent())} not registered</span>
        </Show>
      </td>
      <td class="number">{whole(props.sums.gpus)}</td>
      <td class="number">{mib(props.sums.physical_mib)}</td>
      <td class="number">{mib(props.sums.committed_mib)}</td>
      <td class="number">{mib(props.sums.effective_schedulable_mib)}</td>
    </>
  )
}
