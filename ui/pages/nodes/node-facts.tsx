import type { JSX } from 'solid-js'
import type { NodeBody } from '../../../controller/api/nodes/schema.ts'
import { Ago } from '../../components/ago.tsx'
import { Facts, type Fact } from '../../components/facts.tsx'
import { VramBar } from '../../components/vram-bar.tsx'
import { clockTime } from '../../format/clock.ts'
import { mib, overcommitWords, whole } from '../../format/figures.ts'
import { gpuModels, groupWords } from '../../format/nodes.ts'

export function NodeFacts(props: { readonly node: NodeBody }): JSX.Element {
  const facts = (): readonly Fact[] => {
    const { node } = props
    const { vram } = node
    return [
      { name: 'GPUs', value: gpuModels(node) },
      { name: 'VRAM used', value: mib(vram.used_mib), title: 'Resident and foreign VRAM' },
      {
        name: 'VRAM allocated',
        value: mib(vram.committed_mib),
        title: 'VRAM of placed tasks, resident or swapped out',
      },
      {
        name: 'VRAM schedulable',
        value: mib(vram.effective_schedulable_mib),
        title: 'Physical VRAM × (1 + overcommit percentage / 100)',
      },
      { name: 'VRAM physical', value: mib(vram.physical_mib) },
      { name: 'VRAM swapped out', value: mib(vram.swapped_mib) },
      {
        name: 'VRAM foreign',
        value: mib(vram.foreign_mib),
        title: 'Used by processes that no GPU server started',
      },
      {
        name: 'Over-committed',
        value: mib(vram.over_committed_mib),
        title: 'Remains after the limit was lowered; no task is swapped out at once',
      },
      {
        name: 'Reserve deficit',
        value: mib(vram.reserve_deficit_mib),
        title: 'Missing free VRAM on its GPUs',
      },
      {
        name: 'Overcommit',
        value: overcommitWords(node.overcommit.override_percent, node.overcommit.effective_percent),
      },
      { name: 'Reserve of each GPU', value: mib(node.reserve.effective_mib) },
      {
        name: 'Host memory for swapping',
        value: `${mib(node.host_memory.used_mib)} of ${mib(node.host_memory.swap_mib)}`,
      },
      {
        name: 'Waiting for VRAM',
        value: whole(node.queue_length),
        title: 'Swap-ins, growths and placements',
      },
      { name: 'Groups', value: groupWords(node.groups) },
      {
        name: 'Task features',
        value: node.features.length === 0 ? 'commands only' : node.features.join(', '),
        title:
          'image: container images; env: environment variables and secrets; limits: of memory, CPUs and ' +
          'processes',
      },
      { name: 'Address', value: node.address },
      { name: 'Last seen', value: <Ago at={node.last_seen_at} /> },
      { name: 'First seen', value: clockTime(node.registered_at) },
      { name: 'Id', value: node.node_id },
    ]
  }
  return (
    <section class="card stack" aria-label="Details">
      <VramBar vram={props.node.vram} />
      <Facts facts={facts()} />
    </section>
  )
}
