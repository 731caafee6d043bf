/**
 * The revisions with authors and differences. A rollback is planned like any other change and creates a new
 * revision.
 */
import { useQuery, useQueryClient } from '@tanstack/solid-query'
import { createSignal, For, Show, type JSX } from 'solid-js'
import type {
  ChangedConfigBody,
  ConfigBody,
  RevisionBody,
  RevisionPage,
} from '../../../controller/api/config/schema.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { UNKNOWN } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { differences, shown } from '../../format/config-fields.ts'
import { PlanPanel, type Plan } from './plan-panel.tsx'

const SHOWN = 20

export function History(props: { readonly live: ConfigBody; readonly etag: string | null }): JSX.Element {
  const { api, session } = useCluster()
  const queries = useQueryClient()
  const [plan, setPlan] = createSignal<
    (Plan & { readonly revision: number; readonly etag: string | null }) | null
  >(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  const revisions = useQuery(() => ({
    queryKey: ['config', 'revisions'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<RevisionPage>('/config/revisions', { limit: SHOWN }, signal),
  }))
  const restore = async (
    revision: number,
    etag: string | null,
    isDryRun: boolean,
  ): Promise<ChangedConfigBody | null> => {
    setBusy(true)
    setProblem(null)
    try {
      const query = isDryRun ? { dry_run: true } : {}
      return (
        await api.send<ChangedConfigBody>('POST', `/config/revisions/${revision}/restore`, {
          query,
          ifMatch: etag,
        })
      ).body
    } catch (error) {
      setProblem((error as Error).message)
      return null
    } finally {
      setBusy(false)
    }
  }
  const makePlan = async ({ revision }: RevisionBody): Promise<void> => {
    const answer = await restore(revision, props.etag, true)
    if (answer?.impact === undefined) return
    const changes = differences(props.live, answer)
    setPlan({
      title: `Roll back to revision ${revision}`,
      changes,
      impact: answer.impact,
      revision,
      etag: props.etag,
    })
  }
  const apply = async ({
    revision,
    etag,
  }: {
    readonly revision: number
    readonly etag: string | null
  }): Promise<void> => {
    if ((await restore(revision, etag, false)) === null) return
    setPlan(null)
    await queries.invalidateQueries({ queryKey: ['config'] })
  }
  const columns: readonly Column<RevisionBody>[] = [
    { name: 'Revision', cell: (row) => row().revision },
    { name: 'Time', class: 'nowrap', cell: (row) => clockTime(row().at) },
    { name: 'Author', class: 'text', cell: (row) => row().author ?? UNKNOWN },
    { name: 'Change', cell: (row) => <Changes revision={row()} /> },
    {
      name: 'Roll back',
      nameAs: 'hidden',
      cell: (row) => (
        <Show when={row().revision !== props.live.revision} fallback={<span class="good">current</span>}>
          <button
            onClick={() => void makePlan(row())}
            disabled={isBusy()}
            aria-label={`Roll back to revision ${row().revision}`}
          >
            Roll back…
          </button>
        </Show>
      ),
    },
  ]
  return (
    <section class="card stack" aria-label="History">
      <h2>History</h2>
      <QueryState
        query={revisions}
        isEmpty={(page) => page.items.length === 0}
        whenEmpty={<p class="quiet">No revisions yet.</p>}
      >
        {(page) => (
          <Table name="Revisions" columns={columns} rows={page().items} idOf={({ revision }) => revision} />
        )}
      </QueryState>
      <Show when={problem()}>
        {(text) => (
          <p class="bad" role="alert">
            {text()}
          </p>
        )}
      </Show>
      <Show when={plan()}>
        {(made) => (
          <PlanPanel
            plan={made()}
            whyNot={session.whyNot('operator')}
            isBusy={isBusy()}
            onApply={() => void apply(made())}
            onBack={() => setPlan(null)}
          />
        )}
      </Show>
    </section>
  )
}

function Changes(props: { readonly revision: RevisionBody }): JSX.Element {
  const changed = () =>
    props.revision.before === null ? [] : differences(props.revision.before, props.revision.after)
  return (
    <Show
      when={changed().length > 0}
      fallback={
        <span class="quiet">
          {props.revision.before === null ? firstRevisionText(props.revision) : 'stored without changes'}
        </span>
      }
    >
      <For each={changed()}>
        {({ name, before, after }) => (
          <div>
            <code class="text">{name}</code>: {shown(before)} → {shown(after)}
          </div>
        )}
      </For>
    </Show>
  )
}

/** Before the first revision the environment and the defaults applied; those values are not retained. */
function firstRevisionText({ after }: RevisionBody): string {
  return (
    `first stored revision, with ${after.default_vram_overcommit_percent}% overcommit; before it, ` +
    'settings came from the environment'
  )
}
