import { For, Show, type JSX } from 'solid-js'
import { clockTime } from '../format/clock.ts'
import { RANGES, useAround, useRange } from '../state/range.ts'

export function RangePicker(): JSX.Element {
  const [range, setRange] = useRange()
  const around = useAround()
  return (
    <label>
      Time range{' '}
      <select
        value={around() === null ? range() : ''}
        onChange={(event) => setRange(event.currentTarget.value)}
      >
        <Show when={around()}>{(each) => <option value="">around {clockTime(each().at)}</option>}</Show>
        <For each={RANGES}>{({ value, name }) => <option value={value}>{name}</option>}</For>
      </select>
    </label>
  )
}
