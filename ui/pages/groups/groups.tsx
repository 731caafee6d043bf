/** The groups: their nodes, and what they take from the common pool. */
import { A, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createEffect, createSignal, For, Show, type JSX } from 'solid-js'
import type { GroupBody, GroupPageBody, GroupSumsBody } from '../../../controller/api/groups/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { NodeLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { mib, whole } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { GroupEditor } from './group-editor.tsx'

/** Each opening is a separate object, also for the same group. A null group is a new one. */
interface OpenedEditor {
  readonly group: GroupBody | null
}

/** A group, or the common pool, which has no group. */
interface Row {
  readonly id: string
  readonly group: GroupBody | null
  readonly sums: GroupSumsBody
}

function rowsOf({ items, common_pool: sums }: GroupPageBody): readonly Row[] {
  return [...items.map((group) => ({ id: group.id, group, sums: group.sums })), { id: '', group: null, sums }]
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
  const [search, setSearch] = useSearchParams<{ new?: string }>()
  // A link of the palette. A reload must not open the editor again.
  createEffect(() => {
    if (search.new === undefined || !session.isLoaded()) return
    if (whyNot() === null) setOpened({ group: null })
    setSearch({ new: null }, { replace: true })
  })
  const columns: readonly Column<Row>[] = [
    { name: 'Group', class: 'text', cell: (row) => <Name group={row().group} /> },
    { name: 'Nodes', isNumber: true, cell: (row) => <NodeCount row={row()} /> },
    { name: 'GPUs', isNumber: true, cell: (row) => whole(row().sums.gpus) },
    { name: 'Physical', isNumber: true, cell: (row) => mib(row().sums.physical_mib) },
    { name: 'Allocated', isNumber: true, cell: (row) => mib(row().sums.committed_mib) },
    { name: 'Schedulable', isNumber: true, cell: (row) => mib(row().sums.effective_schedulable_mib) },
    {
      name: 'Edit',
      nameAs: 'hidden',
      cell: (row) => (
        <Show when={row().group}>
          {(group) => (
            <button
              onClick={() => setOpened({ group: group() })}
              disabled={whyNot() !== null}
              aria-label={`Edit ${group().id}`}
            >
              Edit…
            </button>
          )}
        </Show>
      ),
    },
  ]
  return (
    <div class="stack">
      <h1>Groups</h1>
      <p class="quiet">
        Nodes without a group form the common pool, which runs all tasks that do not name a group. A task that
        names groups runs only on the nodes of those groups.
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
            <Table name="Groups" columns={columns} rows={rowsOf(page())} idOf={({ id }) => id} />
          </>
        )}
      </QueryState>
    </div>
  )
}

function Name(props: { readonly group: GroupBody | null }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.group} fallback={<em>common pool</em>}>
      {(group) => (
        <>
          <strong>{group().id}</strong>{' '}
          <A href={path(`/tasks?tab=all&group=${pathSegment(group().id)}`)}>tasks</A>
          <div class="quiet">{group().description}</div>
          <MemberLinks group={group()} />
        </>
      )}
    </Show>
  )
}

function NodeCount(props: { readonly row: Row }): JSX.Element {
  const absent = (): number =>
    props.row.group === null ? 0 : props.row.group.node_ids.length - props.row.sums.nodes
  return (
    <>
      {whole(props.row.sums.nodes)}
      <Show when={absent() > 0}>
        <span class="quiet"> and {whole(absent())} not registered</span>
      </Show>
    </>
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
            <NodeLink class="" id={node.node_id} name={node.name} />
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
