/** The GPU timelines of several runs, aligned on one time axis with a shared cursor. */
import { createSignal, createUniqueId, For, Show, type JSX } from 'solid-js'
import type { RunResidencyBody } from '../../controller/api/simulations/schema.ts'
import { clockWords, seconds } from '../format/figures.ts'
import { GanttChart, type BarWords, type GanttCursor } from './gantt-chart.tsx'
import { runBars, taskCountsAt } from './run-bars.ts'

export interface AlignedRun {
  readonly name: string
  readonly residency: RunResidencyBody
  /** Virtual times of actions, in seconds. */
  readonly marks?: readonly number[]
}

export interface AlignedGanttsProps {
  readonly runs: readonly AlignedRun[]
  /** In milliseconds since the start; omitted: the pointer moves it. */
  readonly cursor?: GanttCursor
  /** Start of the time axis; omitted: the start of the runs. */
  readonly fromSeconds?: number
  /** Shows all GPUs at first, up to the largest number in SHOWN; omitted: a few. */
  readonly isWhole?: boolean
}

const KINDS: readonly BarWords[] = [
  { kind: 'active', words: 'in VRAM' },
  { kind: 'moving', words: 'starting or moving' },
  { kind: 'out', words: 'swapped out' },
]
const SHOWN = [2, 4, 8, 32] as const
const MAX_SHOWN = SHOWN[3]

export function AlignedGantts(props: AlignedGanttsProps): JSX.Element {
  const id = createUniqueId()
  const [pointed, setPointed] = createSignal<number | null>(null)
  // eslint-disable-next-line solid/reactivity -- initial value
  const [shown, setShown] = createSignal<number>(props.isWhole === true ? MAX_SHOWN : 4)
  const cursor = (): GanttCursor => props.cursor ?? { at: pointed(), onMove: setPointed }
  const from = (): number => (props.fromSeconds ?? 0) * 1000
  const to = (): number => Math.max(1, ...props.runs.map(({ residency }) => residency.ends_seconds)) * 1000
  const gpus = (): number => Math.max(0, ...props.runs.map(({ residency }) => residency.gpus.length))
  const at = (): number | null => cursor().at
  return (
    <div class="stack">
      <div class="row">
        <Show when={gpus() > SHOWN[0]}>
          <label for={id}>GPUs shown</label>
          <select
            id={id}
            value={String(choice(gpus(), shown()))}
            onChange={(event) => setShown(Number(event.currentTarget.value))}
          >
            <For each={SHOWN.filter((count, index) => index === 0 || (SHOWN[index - 1] ?? 0) < gpus())}>
              {(count) => (
                <option value={String(count)} selected={count === choice(gpus(), shown())}>
                  {count < gpus() ? `the first ${count}` : `all ${gpus()}`}
                </option>
              )}
            </For>
          </select>
        </Show>
        <span class="quiet" data-testid="instant">
          {at() === null
            ? 'Point at a time to see the state of all runs at that time.'
            : `Virtual time: ${clockWords((at() ?? 0) / 1000)}`}
        </span>
      </div>
      <For each={props.runs}>
        {(run) => (
          <div>
            <GanttChart
              name={run.name}
              rows={run.residency.gpus.slice(0, shown())}
              bars={runBars(run.residency, shown()).filter((bar) => bar.to > from())}
              from={from()}
              to={to()}
              textOf={(bar) => bar.task}
              timeOf={(each) => clockWords(each / 1000)}
              kinds={KINDS}
              cursor={cursor()}
              {...(run.marks === undefined ? {} : { marks: run.marks.map((each) => each * 1000) })}
            />
            <p class="quiet">
              <Show when={at() !== null}>{countWords(run, (at() ?? 0) / 1000)}</Show>
              <Show when={run.residency.cut_at_seconds !== null}>
                {' '}
                There are too many bars: those after {clockWords(run.residency.cut_at_seconds)} are omitted.
              </Show>
            </p>
          </div>
        )}
      </For>
    </div>
  )
}

/** The smallest offered number of at least this size. */
function choice(gpus: number, shown: number): number {
  return SHOWN.find((count) => count >= Math.min(gpus, shown)) ?? MAX_SHOWN
}

function countWords({ residency }: AlignedRun, at: number): string {
  if (at > residency.ends_seconds) return `The run ended after ${seconds(residency.ends_seconds)}.`
  const { resident, moving, out } = taskCountsAt(residency, at)
  const where =
    residency.gpus.length < residency.gpu_count ? ` on the first ${residency.gpus.length} GPUs` : ''
  return `Tasks at this time${where}: ${resident} in VRAM, ${moving} starting or moving, ${out} swapped out.`
}
