/** The explanation of a task's state: one sentence, then its details, then the JSON. */
import { A } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { For, Show, type JSX } from 'solid-js'
import type { ExplanationBody } from '../../../controller/api/schema/explanation.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { QueryState } from '../../components/query-state.tsx'
import { clockTime, mib, seconds } from '../../format/figures.ts'
import { noForecastWords } from '../../format/forecast.ts'
import { reasonWords } from '../../format/reasons.ts'
import { useCluster } from '../../state/cluster.tsx'
import { DecisionLink } from './swap-history.tsx'

export function Explanation(props: { readonly taskId: string }): JSX.Element {
  const { api } = useCluster()
  const explained = useQuery(() => ({
    queryKey: ['tasks', 'explain', props.taskId],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<ExplanationBody>(`/tasks/${pathSegment(props.taskId)}/explain`, {}, signal),
    refetchInterval: 5_000,
  }))
  return (
    <section class="card" aria-labelledby="explain">
      <h2 id="explain">Why</h2>
      <QueryState query={explained}>
        {(body) => (
          <div class="stack">
            <p class="text" id="sentence">
              <strong>{body().sentence}</strong>
            </p>
            <Waiting body={body()} />
            <Expected body={body()} />
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
          <Show when={(wait().served_before ?? 0) > 0}>; {wait().served_before} served before it</Show>
          <Show when={wait().retry_at}>{(at) => <>; may change at {clockTime(at())}</>}</Show>
          <Show when={wait().secondary.length > 0}>
            ; also:{' '}
            {wait()
              .secondary.map(({ reason, node_count: nodes }) => `${reasonWords(reason)} (${nodes} nodes)`)
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
                From {forecast().runs} runs of the live state at {clockTime(forecast().at)}.
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
  const { now } = useCluster()
  const inTime = (at: string): string => seconds(Math.max(0, (Date.parse(at) - now()) / 1000))
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
        {(victim) => (
          <p class="text">
            Swap-out eligibility: {victim().sentence}
            <Show when={victim().eligible_at}>{(at) => <> Eligible in {inTime(at())}.</>}</Show>
          </p>
        )}
      </Show>
    </>
  )
}

function WouldFit(props: { readonly body: ExplanationBody }): JSX.Element {
  return (
    <Show when={props.body.would_fit_if}>
      {(fit) => (
        <div>
          <h3>Changes that would make it fit</h3>
          <Show when={fit().fits_alone}>
            <p>It fits now, but tasks before it in the queue come first.</p>
          </Show>
          <Show
            when={fit().changes.length > 0}
            fallback={
              <Show when={!fit().fits_alone}>
                <p>
                  No single change of a setting or of the task would place it ({fit().nodes_tried} of{' '}
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

function Verdicts(props: { readonly body: ExplanationBody }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.body.verdicts}>
      {(verdicts) => (
        <div class="scroll" tabindex="0" role="group" aria-label="Nodes">
          <table>
            <caption>Nodes of its pool, closest to a fit first ({verdicts().node_count} in total)</caption>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">Verdict</th>
                <th scope="col" class="number">
                  has
                </th>
                <th scope="col" class="number">
                  needs
                </th>
                <th scope="col" class="number">
                  GPU
                </th>
                <th
                  scope="col"
                  class="number"
                  title="Physically free now; a part may be reserved for an earlier task"
                >
                  free
                </th>
                <th
                  scope="col"
                  class="number"
                  title="Largest demand of this kind that fits now, without reserved VRAM"
                >
                  fits now up to
                </th>
                <th
                  scope="col"
                  class="number"
                  title="Largest demand of this kind that fits after the possible swap-outs"
                >
                  after swaps up to
                </th>
              </tr>
            </thead>
            <tbody>
              <For each={verdicts().nodes}>
                {(node) => (
                  <tr>
                    <td class="text">
                      <A href={path(`/nodes/${pathSegment(node.node_id)}`)}>{node.name}</A>
                    </td>
                    <td>{node.fits ? 'fits' : node.reason === null ? 'fits' : reasonWords(node.reason)}</td>
                    <td class="number">{mib(node.have_mib)}</td>
                    <td class="number">{mib(node.need_mib)}</td>
                    <Lines of={node.gpus} words={({ gpu }) => String(gpu)} />
                    <Lines of={node.gpus} words={(gpu) => mib(gpu.free_mib)} />
                    <Lines of={node.gpus} words={(gpu) => mib(gpu.admits_now_mib)} />
                    <Lines of={node.gpus} words={(gpu) => mib(gpu.admits_after_swap_mib)} />
                  </tr>
                )}
              </For>
              <For each={verdicts().others}>
                {(other) => (
                  <tr>
                    <td colSpan={8} class="quiet">
                      {other.nodes} more: {other.reason === null ? 'fit' : reasonWords(other.reason)}
                    </td>
                  </tr>
                )}
              </For>
            </tbody>
          </table>
        </div>
      )}
    </Show>
  )
}

/** A cell with a line per GPU, aligned with its neighbours. */
function Lines<T>(props: { readonly of: readonly T[]; readonly words: (item: T) => string }): JSX.Element {
  return (
    <td class="number">
      <For each={props.of}>{(one) => <div>{props.words(one)}</div>}</For>
    </td>
  )
}
