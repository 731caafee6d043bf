/** Groups: which nodes are set apart for whom, and what that takes from the common pool. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js'
import type { GroupBody } from '../../../controller/api/schema/group.ts'
import type { NodeBody } from '../../../controller/api/schema/node.ts'
import { firstNodes } from '../../api/first-nodes.ts'
import { part } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { mib, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { GroupEditor } from './group-editor.tsx'
import { sumOf } from './sums.ts'

export interface GroupPage {
  readonly items: readonly GroupBody[]
}

const SHOWN_MEMBERS = 8

/** Each opening is an object of its own, also when the same group is opened twice. A null group is a new one. */
interface OpenedEditor {
  readonly group: GroupBody | null
}

export default function Groups(): JSX.Element {
  const { api, session } = useCluster()
  const [opened, setOpened] = createSignal<OpenedEditor | null>(null)
  // An editor closes after its request; by then another may have been opened in its place.
  const close = (editor: OpenedEditor): void => void setOpened((now) => (now === editor ? null : now))
  const groups = useQuery(() => ({
    queryKey: ['groups'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<GroupPage>('/groups', {}, signal),
  }))
  const nodes = useQuery(() => ({
    queryKey: ['nodes', 'of groups'],
    queryFn: ({ signal }: { signal: AbortSignal }) => firstNodes(api, 1_000, signal),
  }))
  const known = (): readonly NodeBody[] => nodes.data ?? []
  const whyNot = () => session.whyNot('operator')
  return (
    <div class="stack">
      <h1>Groups</h1>
      <p class="quiet">
        A node of no group belongs to the common pool, where every task without groups goes. A task that names groups runs on their members
        alone.
      </p>
      <p class="row">
        <button onClick={() => setOpened({ group: null })} disabled={whyNot() !== null} title={whyNot() ?? undefined}>
          New group
        </button>
        <span class="quiet">{whyNot() ?? ''}</span>
      </p>
      <Show when={opened()} keyed>
        {(editor) => <GroupEditor group={editor.group} nodes={known()} onDone={() => close(editor)} />}
      </Show>
      <QueryState
        query={groups}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">No group yet: all nodes are in the common pool.</p>}
      >
        {(page) => (
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
                        <GroupRow group={group()} nodes={known()} whyNot={whyNot()} onEdit={() => setOpened({ group: group() })} />
                      )}
                    </Show>
                  )}
                </For>
                <tr>
                  <td>
                    <em>common pool</em>
                  </td>
                  <Figures nodes={known().filter(({ groups: own }) => own.length === 0)} members={null} />
                  <td />
                </tr>
              </tbody>
            </table>
          </div>
        )}
      </QueryState>
    </div>
  )
}

/** Kept by the group's id when the list is read again, so that its button is not replaced under the focus. */
function GroupRow(props: {
  readonly group: GroupBody
  readonly nodes: readonly NodeBody[]
  readonly whyNot: string | null
  readonly onEdit: () => void
}): JSX.Element {
  const path = usePath()
  const members = createMemo(() => {
    const ids = new Set(props.group.node_ids)
    return props.nodes.filter(({ node_id }) => ids.has(node_id))
  })
  return (
    <tr>
      <td class="text">
        <strong>{props.group.id}</strong> <A href={path(`/tasks?tab=all&group=${part(props.group.id)}`)}>tasks</A>
        <div class="quiet">{props.group.description}</div>
        <MemberLinks nodes={members()} />
      </td>
      <Figures nodes={members()} members={props.group.node_ids.length} />
      <td>
        <button onClick={() => props.onEdit()} disabled={props.whyNot !== null} aria-label={`Edit ${props.group.id}`}>
          Edit…
        </button>
      </td>
    </tr>
  )
}

/** Who they are; of many the first. */
function MemberLinks(props: { readonly nodes: readonly NodeBody[] }): JSX.Element {
  const path = usePath()
  return (
    <div>
      <For each={props.nodes.slice(0, SHOWN_MEMBERS)}>
        {(node, index) => (
          <>
            {index() > 0 ? ', ' : ''}
            <A href={path(`/nodes/${part(node.node_id)}`)}>{node.name}</A>
          </>
        )}
      </For>
      <Show when={props.nodes.length > SHOWN_MEMBERS}>
        <span class="quiet"> and {whole(props.nodes.length - SHOWN_MEMBERS)} more</span>
      </Show>
    </div>
  )
}

function Figures(props: { readonly nodes: readonly NodeBody[]; readonly members: number | null }): JSX.Element {
  const sum = () => sumOf(props.nodes)
  return (
    <>
      <td class="number">
        {whole(props.nodes.length)}
        <Show when={props.members !== null && props.members > props.nodes.length}>
          <span class="quiet"> of {props.members} named</span>
        </Show>
      </td>
      <td class="number">{whole(sum().gpus)}</td>
      <td class="number">{mib(sum().physicalMib)}</td>
      <td class="number">{mib(sum().committedMib)}</td>
      <td class="number">{mib(sum().schedulableMib)}</td>
    </>
  )
}
