/** A decision: one sentence, then the tables of the candidates, then the JSON. */
import { A } from '@solidjs/router'
import { For, Show, type JSX } from 'solid-js'
import type { DecisionBody } from '../../controller/api/schema/decision.ts'
import { pathSegment } from '../api/client.ts'
import { usePath } from '../api/world.ts'
import { clockTime, mib, seconds } from '../format/figures.ts'
import { choiceWords, levelWords } from '../format/victims.ts'

export function DecisionDetails(props: { readonly decision: DecisionBody }): JSX.Element {
  const path = usePath()
  return (
    <div class="stack">
      <p class="text">
        <strong>{props.decision.sentence}</strong>
      </p>
      <p class="quiet text">
        Decision {props.decision.number} of {clockTime(props.decision.at)}, for{' '}
        <A href={path(`/tasks/${pathSegment(props.decision.task_id)}`)}>{props.decision.task_name}</A>, by the
        rule {props.decision.rule}
        <Show when={props.decision.waited_seconds !== null}>
          ; waited for {seconds(props.decision.waited_seconds)}
        </Show>
        .
      </p>
      <Candidates decision={props.decision} />
      <GpuChoices decision={props.decision} />
      <details>
        <summary>As JSON</summary>
        <pre tabindex="0">{JSON.stringify(props.decision, null, 2)}</pre>
      </details>
    </div>
  )
}

function Candidates(props: { readonly decision: DecisionBody }): JSX.Element {
  const path = usePath()
  return (
    <Show when={props.decision.candidates.length > 0}>
      <div class="scroll" tabindex="0" role="group" aria-label="Swap-out candidates">
        <table>
          <caption>
            Swap-out candidates, victims first
            <Show when={props.decision.candidates_left_out > 0}>
              ; {props.decision.candidates_left_out} more are omitted
            </Show>
          </caption>
          <thead>
            <tr>
              <th scope="col">Task</th>
              <th scope="col">Level</th>
              <th scope="col" class="number">
                frees
              </th>
              <th scope="col" class="number">
                idle for
              </th>
              <th scope="col">Chosen</th>
            </tr>
          </thead>
          <tbody>
            <For each={props.decision.candidates}>
              {(candidate) => (
                <tr>
                  <td class="text">
                    <A href={path(`/tasks/${pathSegment(candidate.task_id)}`)}>
                      {candidate.task_name ?? candidate.task_id}
                    </A>{' '}
                    on GPU {candidate.gpu}
                  </td>
                  <td>{levelWords(candidate.level)}</td>
                  <td class="number">{mib(candidate.mib)}</td>
                  <td class="number">{seconds(candidate.idle_seconds)}</td>
                  <td>{choiceWords(candidate.chosen_by)}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </Show>
  )
}

function GpuChoices(props: { readonly decision: DecisionBody }): JSX.Element {
  return (
    <Show when={props.decision.gpus_considered.length > 0}>
      <div class="scroll" tabindex="0" role="group" aria-label="GPUs that admitted the task">
        <table>
          <caption>
            GPUs that admitted it, best first: ordered by the first key, then by the second, ascending
            <Show when={props.decision.gpus_more}>; more GPUs are omitted</Show>
          </caption>
          <thead>
            <tr>
              <th scope="col">GPU</th>
              <th scope="col" class="number">
                first key, MiB
              </th>
              <th scope="col" class="number">
                second key, MiB
              </th>
              <th scope="col">Chosen</th>
            </tr>
          </thead>
          <tbody>
            <For each={props.decision.gpus_considered}>
              {(gpu) => (
                <tr>
                  <td class="text">
                    {gpu.node_name}:{gpu.gpu}
                  </td>
                  <td class="number">{gpu.key1}</td>
                  <td class="number">{gpu.key2}</td>
                  <td>{gpu.chosen ? 'yes' : 'no'}</td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
    </Show>
  )
}
