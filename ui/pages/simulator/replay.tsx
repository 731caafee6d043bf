/**
 * The user's run and the reference solution over time: both clusters at the same instant, moved manually or
 * played.
 */
import { createMemo, createSignal, createUniqueId, onCleanup, type Accessor, type JSX } from 'solid-js'
import type { DebriefBody } from '../../../controller/api/simulations/exercise-schema.ts'
import { AlignedGantts, type AlignedRun } from '../../charts/aligned-gantts.tsx'
import { valueAt } from '../../charts/run-bars.ts'
import { clockWords, percent, whole } from '../../format/figures.ts'
import { Table, type Column } from '../../design/table.tsx'
import { Actions } from './actions.tsx'
import styles from './time-controls.module.css'

/** Duration of a full playback. */
const PLAYBACK_MS = 30_000
const FRAME_MS = 100

type Side = DebriefBody['reference']

const FIGURES: readonly (readonly [
  series: string,
  name: string,
  format: (value: number | null) => string,
])[] = [
  ['tasks_pending', 'Pending tasks', whole],
  ['tasks_placed', 'Placed tasks', whole],
  ['utilization_percent', 'Utilization', percent],
  ['starvation_percent', 'Starvation', percent],
  ['swap_outs', 'Swap-outs in this interval', whole],
]

export function Replay(props: { readonly body: DebriefBody }): JSX.Element {
  const id = createUniqueId()
  const from = (): number => props.body.begins_at_seconds
  const to = (): number =>
    Math.max(props.body.replay.residency.ends_seconds, props.body.reference.replay.residency.ends_seconds)
  const [at, setAt] = createSignal(from())
  const [isPlaying, setPlaying] = createSignal(false)
  let timer: ReturnType<typeof setInterval> | undefined
  const pause = (): void => {
    clearInterval(timer)
    setPlaying(false)
  }
  onCleanup(pause)
  const step = (): void => {
    setAt(Math.min(to(), at() + ((to() - from()) * FRAME_MS) / PLAYBACK_MS))
    if (at() >= to()) pause()
  }
  const play = (): void => {
    if (at() >= to()) setAt(from())
    setPlaying(true)
    timer = setInterval(() => step(), FRAME_MS)
  }
  const goTo = (seconds: number): void => {
    pause()
    setAt(Math.min(to(), Math.max(from(), seconds)))
  }
  const instants = createMemo(() =>
    [
      ...new Set(
        [...props.body.actions, ...props.body.reference.actions].map(
          ({ virtual_seconds }) => virtual_seconds,
        ),
      ),
    ].sort((a, b) => a - b),
  )
  const before = (): number | undefined => beforeAndAfter(instants(), at())[0]
  const after = (): number | undefined => beforeAndAfter(instants(), at())[1]
  const sides = (): readonly (readonly [name: string, side: Side])[] => [
    ['Your run', props.body],
    ['Reference', props.body.reference],
  ]
  const runs = createMemo((): readonly AlignedRun[] =>
    sides().map(([name, { replay, actions }]) => ({
      name,
      residency: replay.residency,
      marks: actions.map(({ virtual_seconds }) => virtual_seconds),
    })),
  )
  const columns = (): readonly Column<(typeof FIGURES)[number]>[] => [
    { name: 'At this time', cell: (row) => row()[1] },
    ...sides().map(([name, side]) => ({
      name,
      isNumber: true,
      cell: (row: Accessor<(typeof FIGURES)[number]>) => row()[2](figureAt(side, row()[0], at())),
    })),
  ]
  return (
    <section class="card stack" aria-label="Replay">
      <h2>Both runs over time</h2>
      <div class="row">
        <button class="primary" onClick={() => (isPlaying() ? pause() : play())}>
          {isPlaying() ? 'Pause' : 'Play'}
        </button>
        <button disabled={before() === undefined} onClick={() => goTo(before() ?? from())}>
          Previous action
        </button>
        <button disabled={after() === undefined} onClick={() => goTo(after() ?? to())}>
          Next action
        </button>
        <label for={id}>Time</label>
        <input
          id={id}
          class={styles['range'] ?? ''}
          type="range"
          min={from()}
          max={to()}
          step="1"
          value={at()}
          aria-valuetext={clockWords(at())}
          onInput={(event) => goTo(Number(event.currentTarget.value))}
        />
        <strong class={styles['clock'] ?? ''}>{clockWords(at())}</strong>
      </div>
      <p class="quiet">Blue lines mark actions. Both runs are identical until {clockWords(from())}.</p>
      <AlignedGantts
        runs={runs()}
        fromSeconds={from()}
        isWhole
        cursor={{ at: at() * 1000, onMove: (each) => goTo((each ?? 0) / 1000), isHeld: true }}
      />
      <Table name="At this time" columns={columns()} rows={FIGURES} />
      <div class="grid">
        <section aria-label="Your actions">
          <h3>Your actions</h3>
          <Actions actions={props.body.actions} at={at()} />
        </section>
        <section aria-label="Reference solution">
          <h3>Reference solution</h3>
          <Actions actions={props.body.reference.actions} at={at()} />
          <p class="quiet">
            {props.body.reference.score.points} of {props.body.reference.score.of} points
          </p>
        </section>
      </div>
    </section>
  )
}

/** @param rising times in ascending order */
function beforeAndAfter(
  rising: readonly number[],
  at: number,
): readonly [number | undefined, number | undefined] {
  return [rising.findLast((each) => each < at), rising.find((each) => each > at)]
}

function figureAt({ replay }: Side, name: string, at: number): number | null {
  const { x, series } = replay.series
  return valueAt(x, series.find((each) => each.name === name)?.values ?? [], at)
}
