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
      { name: 'Used VRAM', value: mib(vram.used_mib), title: 'Resident and foreign VRAM' },
      {
        name: 'Allocated VRAM',
        value: mib(vram.committed_mib),
        title: 'VRAM of placed tasks, whether resident or swapped out',
      },
      {
        name: 'Schedulable VRAM',
        value: mib(vram.effective_schedulable_mib),
        title: 'Physical VRAM × (1 + overcommit percentage / 100)',
      },
      { name: 'Physical VRAM', value: mib(vram.physical_mib) },
      { name: 'Swapped-out VRAM', value: mib(vram.swapped_mib) },
      {
        name: 'Foreign VRAM',
        value: mib(vram.foreign_mib),
        title: 'VRAM used by processes that the GPU server did not start',
      },
      {
        name: 'Over-committed',
        value: mib(vram.over_committed_mib),
        title: 'Demand beyond the commit limit; it does not cause immediate swap-outs',
      },
      {
        name: 'Reserve deficit',
        value: mib(vram.reserve_deficit_mib),
        title: 'Free VRAM missing from the reserve, summed over the GPUs',
      },
      {
        name: 'Overcommit',
        value: overcommitWords(node.overcommit.override_percent, node.overcommit.effective_percent),
      },
      { name: 'Reserve per GPU', value: mib(node.reserve.effective_mib) },
      {
        name: 'Host memory for swapping',
        value: `${mib(node.host_memory.used_mib)} of ${mib(node.host_memory.swap_mib)}`,
      },
      {
        name: 'Waiting for VRAM',
        value: whole(node.queue_length),
        title: 'Swap-ins, growths and placements that wait for VRAM',
      },
      { name: 'Groups', value: groupWords(node.groups) },
      {
        name: 'Task features',
        value: node.features.length === 0 ? 'commands only' : node.features.join(', '),
        title:
          'image: container images; env: environment variables and secrets; limits: memory, CPU and ' +
          'process limits',
      },
      { name: 'Address', value: node.address },
      { name: 'Last seen', value: <Ago at={node.last_seen_at} /> },
      { name: 'First seen', value: clockTime(node.registered_at) },
      { name: 'ID', value: node.node_id },
    ]
  }
  return (
    <section class="card stack" aria-label="Details">
      <VramBar vram={props.node.vram} />
      <Facts facts={facts()} />
    </section>
  )
}
