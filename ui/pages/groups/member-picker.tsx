/** Chooses the members of a group: nodes of the whole cluster, filtered by name. */
import { useQuery } from '@tanstack/solid-query'
import { createMemo, createSignal, createUniqueId, For, onCleanup, Show, type JSX } from 'solid-js'
import { Problem } from '../../design/problem.tsx'
import type { NodeBody, NodePage } from '../../../controller/api/nodes/schema.ts'
import { QueryState } from '../../components/query-state.tsx'
import { mib, plural, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'

export interface MemberPickerProps {
  /** The stored group; null: a new one. */
  readonly groupId: string | null
  readonly members: ReadonlySet<string>
  readonly onChange: (members: ReadonlySet<string>) => void
}

/** Pages are limited by size, so a page may have fewer. */
const SHOWN = 50
const TYPING_MS = 250
const MAX_PER_REQUEST = 1_000

export function MemberPicker(props: MemberPickerProps): JSX.Element {
  const { api } = useCluster()
  const id = createUniqueId()
  const [part, setPart] = createSignal('')
  const [areStoredOnly, setStoredOnly] = createSignal(false)
  const [isAdding, setAdding] = createSignal(false)
  const [problem, setProblem] = createSignal('')
  const filter = () => ({ q: part(), group: areStoredOnly() ? (props.groupId ?? '') : '', sort: 'name' })
  const nodes = useQuery(() => ({
    queryKey: ['group-nodes', filter()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<NodePage>('/nodes', { ...filter(), limit: SHOWN }, signal),
  }))
  let timer: ReturnType<typeof setTimeout> | undefined
  onCleanup(() => clearTimeout(timer))
  const typed = (text: string): void => {
    clearTimeout(timer)
    timer = setTimeout(() => setPart(text.trim()), TYPING_MS)
  }
  const toggle = (nodeId: string): void => {
    const next = new Set(props.members)
    if (!next.delete(nodeId)) next.add(nodeId)
    props.onChange(next)
  }
  const addAll = async (): Promise<void> => {
    setAdding(true)
    setProblem('')
    try {
      const next = new Set(props.members)
      let cursor = ''
      do {
        const page: NodePage = await api.get<NodePage>('/nodes', {
          ...filter(),
          limit: MAX_PER_REQUEST,
          cursor,
        })
        for (const { node_id: nodeId } of page.items) next.add(nodeId)
        cursor = page.next_cursor ?? ''
      } while (cursor !== '')
      props.onChange(next)
    } catch (error) {
      setProblem((error as Error).message)
    } finally {
      setAdding(false)
    }
  }
  return (
    <fieldset>
      <legend>Members</legend>
      <p>
        <strong>{whole(props.members.size)}</strong> selected
      </p>
      <div class="row">
        <label for={id}>Find nodes</label>
        <input id={id} type="search" maxlength="200" onInput={(event) => typed(event.currentTarget.value)} />
        <Show when={props.groupId !== null}>
          <label for={`${id}-of`}>Show</label>
          <select
            id={`${id}-of`}
            onChange={(event) => setStoredOnly(event.currentTarget.value === 'members')}
          >
            <option value="all">all nodes</option>
            <option value="members">nodes of the group</option>
          </select>
        </Show>
      </div>
      <QueryState
        query={nodes}
        isEmpty={({ total }) => total === 0}
        whenEmpty={<p class="quiet">No matching nodes.</p>}
      >
        {(page) => (
          <>
            <Choices nodes={page().items} members={props.members} onToggle={toggle} />
            <p class="row">
              <span class="quiet" role="status">
                Showing {whole(page().items.length)} of {whole(page().total)} nodes, sorted by name.
                <Show when={page().next_cursor !== null}> Filter by name to find the others.</Show>
              </span>
              <button type="button" disabled={isAdding()} onClick={() => void addAll()}>
                {isAdding() ? 'Selecting…' : `Select all ${whole(page().total)}`}
              </button>
              <button
                type="button"
                disabled={props.members.size === 0}
                onClick={() => props.onChange(new Set())}
              >
                Clear selection
              </button>
            </p>
            <Problem text={problem()} />
          </>
        )}
      </QueryState>
    </fieldset>
  )
}

interface ChoicesProps {
  readonly nodes: readonly NodeBody[]
  readonly members: ReadonlySet<string>
  readonly onToggle: (nodeId: string) => void
}

/** Rows are kept by id: a checkbox must keep the focus when values change. */
function Choices(props: ChoicesProps): JSX.Element {
  const byId = createMemo(() => new Map(props.nodes.map((node) => [node.node_id, node])))
  const ids = createMemo(() => props.nodes.map((node) => node.node_id))
  return (
    <For each={ids()}>
      {(id) => (
        <div>
          <label class="text">
            <input type="checkbox" checked={props.members.has(id)} onChange={() => props.onToggle(id)} />{' '}
            {byId().get(id)?.name}{' '}
            <Show when={byId().get(id)}>{(node) => <span class="quiet">{factsOf(node())}</span>}</Show>
          </label>
        </div>
      )}
    </For>
  )
}

function factsOf({ gpus, vram, groups }: NodeBody): string {
  return (
    `${plural(gpus.length, 'GPU', 'GPUs')}, ` +
    `${mib(vram.physical_mib)}${groups.length === 0 ? ', common pool' : `, in ${groups.join(', ')}`}`
  )
}
