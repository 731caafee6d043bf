/** Creates, changes or deletes a group: choose members, preview the effects, then apply. */
import { useQueryClient } from '@tanstack/solid-query'
import { createSignal, createUniqueId, onMount, Show, type JSX } from 'solid-js'
import type { GroupBody, GroupDryRunBody, GroupPreviewBody } from '../../../controller/api/groups/schema.ts'
import { pathSegment, Refused } from '../../api/client.ts'
import { Problem } from '../../design/problem.tsx'
import { mib, plural, whole } from '../../format/figures.ts'
import { GROUP_NAME_RULE } from '../../format/groups.ts'
import { useCluster } from '../../state/cluster.tsx'
import { MemberPicker } from './member-picker.tsx'

export interface GroupEditorProps {
  /** Null: a new one. */
  readonly group: GroupBody | null
  readonly onDone: () => void
}

interface Plan {
  readonly does: 'store' | 'delete'
  readonly preview: GroupPreviewBody
}

export function GroupEditor(props: GroupEditorProps): JSX.Element {
  const { api } = useCluster()
  const queries = useQueryClient()
  const rule = createUniqueId()
  let first!: HTMLHeadingElement
  // eslint-disable-next-line solid/reactivity -- the editor keeps the group that it was opened with
  const opened = props.group
  const [id, setId] = createSignal(opened?.id ?? '')
  const [description, setDescription] = createSignal(opened?.description ?? '')
  const [members, setMembers] = createSignal<ReadonlySet<string>>(new Set(opened?.node_ids ?? []))
  const [plan, setPlan] = createSignal<Plan | null>(null)
  const [problem, setProblem] = createSignal<Error | null>(null)
  onMount(() => first.focus())

  const body = () => ({
    description: description(),
    node_ids: [...members()].sort((a, b) => (a < b ? -1 : 1)),
  })
  const attempt = async (act: () => Promise<void>): Promise<void> => {
    setProblem(null)
    try {
      await act()
    } catch (error) {
      setProblem(error as Error)
    }
  }
  const planStore = (event: Event): Promise<void> => {
    event.preventDefault()
    return attempt(async () => {
      const { body: answer } = await api.send<GroupDryRunBody>('PUT', `/groups/${pathSegment(id())}`, {
        query: { dry_run: true },
        body: body(),
      })
      setPlan({ does: 'store', preview: answer.preview })
    })
  }
  const planDelete = (): Promise<void> =>
    attempt(async () => {
      const { body: answer } = await api.send<GroupDryRunBody>('DELETE', `/groups/${pathSegment(id())}`, {
        query: { dry_run: true },
      })
      setPlan({ does: 'delete', preview: answer.preview })
    })
  const apply = ({ does }: Plan): Promise<void> =>
    attempt(async () => {
      if (does === 'delete') await api.send('DELETE', `/groups/${pathSegment(id())}`)
      else if (opened === null) await api.send('POST', '/groups', { body: { id: id(), ...body() } })
      else await api.send('PUT', `/groups/${pathSegment(id())}`, { body: body() })
      // Closes first: while the lists are read again, another editor may be opened.
      props.onDone()
      await Promise.all(
        ['groups', 'nodes'].map((subject) => queries.invalidateQueries({ queryKey: [subject] })),
      )
    })
  const choose = (next: ReadonlySet<string>): void => {
    setMembers(next)
    setPlan(null)
  }
  return (
    <form
      class="card stack"
      aria-label={opened === null ? 'New group' : `Group ${opened.id}`}
      onSubmit={(event) => void planStore(event)}
    >
      <h2 ref={first} tabindex="-1" class="text">
        {opened === null ? 'New group' : opened.id}
      </h2>
      <Show when={opened === null}>
        <label>
          Name{' '}
          <input
            value={id()}
            required
            maxlength="200"
            aria-invalid={problem() instanceof Refused}
            aria-describedby={`${rule}-rule`}
            onInput={(event) => {
              setId(event.currentTarget.value)
              setPlan(null)
            }}
          />
        </label>
        <p id={`${rule}-rule`} class="quiet">
          {GROUP_NAME_RULE}
        </p>
      </Show>
      <label>
        Description{' '}
        <input
          value={description()}
          maxlength="1000"
          onInput={(event) => setDescription(event.currentTarget.value)}
        />
      </label>
      <MemberPicker groupId={opened?.id ?? null} members={members()} onChange={choose} />
      <Problem text={problem()?.message} />
      <Show
        when={plan()}
        fallback={
          <div class="row">
            <button class="primary" type="submit" disabled={id().trim() === ''}>
              Plan
            </button>
            <Show when={opened !== null}>
              <button type="button" class="danger" onClick={() => void planDelete()}>
                Delete…
              </button>
            </Show>
            <button type="button" onClick={() => props.onDone()}>
              Close
            </button>
          </div>
        }
      >
        {(made) => (
          <>
            <Preview preview={made().preview} />
            <div class="row">
              <button
                type="button"
                class={made().does === 'delete' ? 'danger' : 'primary'}
                onClick={() => void apply(made())}
              >
                {made().does === 'delete' ? 'Delete group' : 'Apply'}
              </button>
              <button type="button" onClick={() => setPlan(null)}>
                Back
              </button>
            </div>
          </>
        )}
      </Show>
    </form>
  )
}

function Preview(props: { readonly preview: GroupPreviewBody }): JSX.Element {
  const p = () => props.preview
  return (
    <section aria-label="Impact" role="status">
      <h3>Impact</h3>
      <ul>
        <li>
          {nodesWords(p().joining.nodes, 'joins', 'join')} ({plural(p().joining.gpus, 'GPU', 'GPUs')}),{' '}
          {nodesWords(p().leaving.nodes, 'leaves', 'leave')}.
        </li>
        <li>
          The common pool loses {plural(p().leaves_common_pool.nodes, 'node', 'nodes')} with{' '}
          {plural(p().leaves_common_pool.gpus, 'GPU', 'GPUs')} and{' '}
          {mib(p().leaves_common_pool.effective_schedulable_mib)} of schedulable VRAM, and regains{' '}
          {plural(p().returns_to_common_pool.nodes, 'node', 'nodes')}.
        </li>
        <li>
          {plural(p().finishing.tasks, 'placed task', 'placed tasks')} could no longer be placed on the same
          nodes, but will keep running there.
        </li>
        <li>
          {plural(p().become_feasible.tasks, 'pending task', 'pending tasks')} could be placed after the
          change; {whole(p().become_infeasible.tasks)} could no longer be placed.
        </li>
      </ul>
    </section>
  )
}

/** `1 node joins`, `2 nodes join`. */
function nodesWords(count: number, singular: string, plural: string): string {
  return count === 1 ? `1 node ${singular}` : `${whole(count)} nodes ${plural}`
}
