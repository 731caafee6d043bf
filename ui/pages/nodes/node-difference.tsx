/** The figures of one node before and after a change. */
import { For, Show, type JSX } from 'solid-js'
import type { ImpactBody } from '../../../controller/api/schema/impact.ts'
import { mib, percent } from '../../format/figures.ts'

type Figures = ImpactBody['nodes'][number]['before']

const ROWS: readonly {
  readonly name: string
  readonly of: (figures: Figures) => number
  readonly isPercent?: boolean
}[] = [
  { name: 'Overcommit', of: (figures) => figures.overcommit_percent, isPercent: true },
  { name: 'Reserve of each GPU', of: (figures) => figures.reserve_mib },
  { name: 'Schedulable VRAM', of: (figures) => figures.effective_schedulable_mib },
  { name: 'Commit limit', of: (figures) => figures.commit_limit_mib },
  { name: 'Over-committed', of: (figures) => figures.over_committed_mib },
  { name: 'Reserve deficit', of: (figures) => figures.reserve_deficit_mib },
]

export function NodeDifference(props: { readonly impact: ImpactBody; readonly nodeId: string }): JSX.Element {
  const node = () => props.impact.nodes.find(({ node_id: id }) => id === props.nodeId)
  return (
    <Show when={node()} fallback={<p>This node does not change.</p>}>
      {(found) => (
        <div class="scroll" tabindex="0" role="group" aria-label="This node, before and after">
          <table>
            <thead>
              <tr>
                <th scope="col">This node</th>
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
                {(row) => <Row row={row} before={row.of(found().before)} after={row.of(found().after)} />}
              </For>
            </tbody>
          </table>
        </div>
      )}
    </Show>
  )
}

function Row(props: {
  readonly row: (typeof ROWS)[number]
  readonly before: number
  readonly after: number
}): JSX.Element {
  const words = (value: number): string => (props.row.isPercent === true ? percent(value, 0) : mib(value))
  const difference = (): string => {
    const by = props.after - props.before
    return by === 0 ? '0' : by > 0 ? `+${words(by)}` : `−${words(-by)}`
  }
  return (
    <tr>
      <td>{props.row.name}</td>
      <td class="number">{words(props.before)}</td>
      <td class="number">{words(props.after)}</td>
      <td class="number">{difference()}</td>
    </tr>
  )
}
