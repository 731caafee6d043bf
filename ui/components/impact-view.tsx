/** What a change of settings would do, before and after: the answer of a dry run. */
import { For, Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../controller/api/schema/impact.ts'
import { mib, whole } from '../format/figures.ts'

type Figures = ImpactBody['total']['before']

const ROWS: readonly { readonly name: string; readonly of: (figures: Figures) => number }[] = [
  { name: 'schedulable', of: (figures) => figures.effective_schedulable_mib },
  { name: 'may be promised', of: (figures) => figures.commit_limit_mib },
  { name: 'promised beyond the limit', of: (figures) => figures.over_committed_mib },
  { name: 'missing from the reserve', of: (figures) => figures.reserve_deficit_mib },
]

export function ImpactView(props: { readonly impact: ImpactBody }): JSX.Element {
  return (
    <div class="stack">
      <Show when={props.impact.node_count > 0} fallback={<p>No node would change.</p>}>
        <For each={props.impact.nodes}>
          {(node) => (
            <BeforeAndAfter
              name={`${node.name}: ${node.before.overcommit_percent} % → ${node.after.overcommit_percent} %, reserve ${mib(node.before.reserve_mib)} → ${mib(node.after.reserve_mib)}`}
              before={node.before}
              after={node.after}
            />
          )}
        </For>
      </Show>
      <Consequences impact={props.impact} />
    </div>
  )
}

function BeforeAndAfter(props: { readonly name: string; readonly before: Figures; readonly after: Figures }): JSX.Element {
  return (
    <div class="scroll" tabindex="0" role="group" aria-label={props.name}>
      <table>
        <caption class="text">{props.name}</caption>
        <thead>
          <tr>
            <th scope="col">VRAM</th>
            <th scope="col" class="number">
              before
            </th>
            <th scope="col" class="number">
              after
            </th>
            <th scope="col" class="number">
              difference
            </th>
          </tr>
        </thead>
        <tbody>
          <For each={ROWS}>
            {(row) => (
              <tr>
                <td>{row.name}</td>
                <td class="number">{mib(row.of(props.before))}</td>
                <td class="number">{mib(row.of(props.after))}</td>
                <td class="number">{signed(row.of(props.after) - row.of(props.before))}</td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </div>
  )
}

function Consequences(props: { readonly impact: ImpactBody }): JSX.Element {
  const pending = () => props.impact.pending
  return (
    <ul>
      <li>
        Of {whole(pending().of)} pending tasks {whole(pending().would_fit)} would fit then and fit nowhere now, each on its own
        <Show when={pending().cut}>; {whole(pending().looked_at)} were looked at</Show>.
      </li>
      <Show when={pending().infeasible > 0}>
        <li class="bad">{whole(pending().infeasible)} pending tasks could never be placed then, and could now.</li>
      </Show>
      <Show when={props.impact.gpu_over_count > 0}>
        <li class="warn">
          {whole(props.impact.gpu_over_count)} GPUs would be over their limit or below their reserve. Nobody leaves because of it: what is
          over shrinks as tasks end or leave for others.
        </li>
      </Show>
      <Show when={props.impact.residency_impossible_count > 0}>
        <li class="bad">{whole(props.impact.residency_impossible_count)} placed tasks could not become resident again.</li>
      </Show>
      <Show when={props.impact.forecast_unavailable_because}>{(why) => <li class="quiet text">No forecast: {why()}</li>}</Show>
    </ul>
  )
}

function signed(value: number): string {
  if (value === 0) return '0'
  return value > 0 ? `+${mib(value)}` : `−${mib(-value)}`
}
