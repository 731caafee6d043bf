/** The time range of all charts of the page, and whether they follow the present. */
import { For, Show, type JSX } from 'solid-js'
import { clockTime } from '../format/clock.ts'
import { useCluster } from '../state/cluster.tsx'
import { keepRange, RANGES, useRange, useSpan, useZoom } from '../state/range.ts'
import type { Span } from '../state/span.ts'

export function RangePicker(): JSX.Element {
  const { now } = useCluster()
  const [range, setRange] = useRange()
  const span = useSpan()
  const zoom = useZoom()
  keepRange()
  const pause = (): void => {
    const ms = RANGES.find(({ value }) => value === range())?.ms ?? 0
    zoom(now() - ms, now())
  }
  return (
    <span class="row">
      <label>
        Time range{' '}
        <select
          value={span() === null ? range() : ''}
          onChange={(event) => setRange(event.currentTarget.value)}
        >
          <Show when={span()}>{(each) => <option value="">{spanWords(each())}</option>}</Show>
          <For each={RANGES}>{({ value, name }) => <option value={value}>{name}</option>}</For>
        </select>
      </label>
      <Show
        when={span()}
        fallback={
          <button title="Keep the current time range in the charts" onClick={pause}>
            Pause charts
          </button>
        }
      >
        <button title="The charts are paused. Return to the present." onClick={() => setRange(range())}>
          Go live
        </button>
      </Show>
    </span>
  )
}

function spanWords({ at, from, to }: Span): string {
  if (at !== null) return `around ${clockTime(at)}`
  const [start, end] = [clockTime(from), clockTime(to)]
  const isOneDay = start.slice(0, 10) === end.slice(0, 10)
  return `${start} to ${isOneDay ? end.slice(11) : end}`
}
