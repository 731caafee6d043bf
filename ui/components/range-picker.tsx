import { For, type JSX } from 'solid-js'
import { RANGES, useRange } from '../state/range.ts'

export function RangePicker(): JSX.Element {
  const [range, setRange] = useRange()
  return (
    <label>
      Time range{' '}
      <select value={range()} onChange={(event) => setRange(event.currentTarget.value)}>
        <For each={RANGES}>{({ value, name }) => <option value={value}>{name}</option>}</For>
      </select>
    </label>
  )
}
