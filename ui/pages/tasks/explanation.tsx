/** The explanation of a task's state: one sentence, then its details, then the JSON. */
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { ExplanationBody } from '../../../controller/api/observe/explanation-schema.ts'
import { pathSegment } from '../../api/client.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime } from '../../format/clock.ts'
import { mib, plural } from '../../format/figures.ts'
import { noForecastWords } from '../../format/forecast.ts'
import { reasonWords } from '../../format/reasons.ts'
import { NodeLink } from '../../components/links.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { DecisionLink } from './swap-history.tsx'
import styles from './tasks.module.css'

function useExplanation(taskId: () => string) {
  const { api } = useCluster()
  return useQuery(() => ({
    queryKey: ['tasks', 'explain', taskId()],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<ExplanationBody>(`/tasks/${pathSegment(taskId())}/explain`, {}, signal),
    refetchInterval: 5_000,
  }))
}

/** The answer to why it waits or where it is, and when it is expected to start. */
export function Answer(props: { readonly taskId: string }): JSX.Element {
  const explained = useExplanation(() => props.taskId)
  return (
    <QueryState query={explained}>
      {(body) => (
        <>
          <p class={`text ${styles['sentence']}`} id="sentence">
            {body().sentence}
          </p>
          <Expected body={body()} />
        </>
      )}
    </QueryState>
  )
}

export function Explanation(props: { readonly taskId: string }): JSX.Element {
  const explained = useExplanation(() => props.taskId)
  return (
    <section class="card" aria-labelledby="explain">
      <h2 id="explain">Why</h2>
      <QueryState query={explained}>
        {(body) => (
          <div class="stack">
            <Waiting body={body()} />
            <PlacedDetails body={body()} />
            <WouldFit body={body()} />
            <Verdicts body={body()} />
            <details>
              <summary>As JSON</summary>
              <pre tabindex="0">{JSON.stringify(body(), null, 2)}</pre>
            </details>
          </div>
        )}
      </QueryState>
    </section>
  )
}

function Waiting(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <Show when={props.body.wait}>
      {(wait) => (
        <p class="quiet text">
          {reasonWords(wait().reason)} ({wait().reason})
          <Show when={wait().queue_position !== null}>; position {wait().queue_position} in the queue</Show>
          <Show when={(wait().served_before ?? 0) > 0}>
            ; {plural(wait().served_before ?? 0, 'entry is', 'entries are')} served first
          </Show>
          <Show when={wait().retry_at}>{(at) => <>; may change at {clockTime(at())}</>}</Show>
          <Show when={wait().secondary.length > 0}>
            ; also:{' '}
            {wait()
              .secondary.map(
                ({ reason, node_count: nodes }) =>
                  `${reasonWords(reason)} (${plural(nodes, 'node', 'nodes')})`,
              )
              .join(', ')}
          </Show>
          .
        </p>
      )}
    </Show>
  )
}

/** The expected start according to the simulation of the live state. */
function Expected(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <Show when={props.body.wait !== null && props.body.placement === null}>
      <p class="text" aria-label="Expected start" role="group">
        <strong>Expected start: </strong>
        <Show
          when={props.body.forecast}
          fallback={<span class="quiet">— {noForecastWords(props.body.forecast_unavailable_because)}</span>}
        >
          {(forecast) => (
            <>
              {forecast().sentence}{' '}
              <span class="quiet">
                Based on {forecast().runs} simulations of the live state at {clockTime(forecast().at)}.
              </span>
            </>
          )}
        </Show>
      </p>
    </Show>
  )
}

/** For a placed task: the decisions that placed it, and whether it can be swapped out. */
function PlacedDetails(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <>
      <Show when={props.body.placed_by}>
        {(decided) => (
          <p class="text">
            Placed by <DecisionLink number={decided().number} />: {decided().sentence}
          </p>
        )}
      </Show>
      <Show when={props.body.swapped_out_by}>
        {(decided) => (
          <p class="text">
            Last swapped out by <DecisionLink number={decided().number} />: {decided().sentence}
          </p>
        )}
      </Show>
      <Show when={props.body.victim}>
        {(victim) => <p class="text">Swap-out eligibility: {victim().sentence}</p>}
      </Show>
    </>
  )
}

function WouldFit(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <Show when={props.body.would_fit_if}>
      {(fit) => (
        <div>
          <h3>Changes that would make the task fit</h3>
          <Show when={fit().fits_alone}>
            <p>The task fits now, but tasks ahead of it in the queue are placed first.</p>
          </Show>
          <Show
            when={fit().changes.length > 0}
            fallback={
              <Show when={!fit().fits_alone}>
                <p>
                  No single change to a setting or to the task would make it fit ({fit().nodes_tried} of{' '}
                  {fit().nodes} nodes examined).
                </p>
              </Show>
            }
          >
            <ul>
              <For each={fit().changes}>
                {(change) => (
                  <li class="text">
                    {change.sentence}
                    <Show when={change.proviso}>{(proviso) => <span class="quiet"> {proviso()}</span>}</Show>
                  </li>
                )}
              </For>
            </ul>
          </Show>
        </div>
      )}
    </Show>
  )
}

type Verdict = NonNullable<ExplanationBody['verdicts']>['nodes'][number]

/** A column with a line per GPU, aligned with its neighbours. */
function perGpu(
  name: string,
  words: (gpu: Verdict['gpus'][number]) => string,
  help?: string,
): Column<Verdict> {
  return {
    name,
    isNumber: true,
    ...(help === undefined ? {} : { help }),
    cell: (row) => <For each={row().gpus}>{(gpu) => <div>{words(gpu)}</div>}</For>,
  }
}

const VERDICTS: readonly Column<Verdict>[] = [
  {
    name: 'Node',
    class: 'text',
    cell: (row) => <NodeLink class="" id={row().node_id} name={row().name} />,
  },
  {
    name: 'Verdict',
    cell: (row) => {
      const { fits, reason } = row()
      return fits || reason === null ? 'fits' : reasonWords(reason)
    },
  },
  { name: 'Has', isNumber: true, cell: (row) => mib(row().have_mib) },
  { name: 'Needs', isNumber: true, cell: (row) => mib(row().need_mib) },
  perGpu('GPU', ({ gpu }) => String(gpu)),
  perGpu(
    'Free',
    (gpu) => mib(gpu.free_mib),
    'Physically free now; part of it may be reserved for an earlier task',
  ),
  perGpu(
    'Largest fit now',
    (gpu) => mib(gpu.admits_now_mib),
    'Largest demand of this kind that fits now, excluding reserved VRAM',
  ),
  perGpu(
    'Largest fit after swaps',
    (gpu) => mib(gpu.admits_after_swap_mib),
    'Largest demand of this kind that fits after the possible swap-outs',
  ),
]

function Verdicts(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <Show when={props.body.verdicts}>
      {(verdicts) => (
        <Table
          name="Nodes"
          caption={`Nodes in the pool of the task, closest fit first (${verdicts().node_count} in total)`}
          columns={VERDICTS}
          rows={verdicts().nodes}
        >
          <For each={verdicts().others}>
            {(others) => (
              <tr>
                <td colSpan={VERDICTS.length} class="quiet">
                  {plural(others.nodes, 'more node', 'more nodes')}:{' '}
                  {others.reason === null ? 'fit' : reasonWords(others.reason)}
                </td>
              </tr>
            )}
          </For>
        </Table>
      )}
    </Show>
  )
}
