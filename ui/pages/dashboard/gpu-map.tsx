/**
 * All GPUs as cells of one map, coloured by one figure. The same figures are in the status line for the
 * keyboard, and in a table.
 */
import { useNavigate, useSearchParams } from '@solidjs/router'
import { useQuery } from '@tanstack/solid-query'
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js'
import type { GpuListBody } from '../../../controller/api/gpus/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { usePath } from '../../api/world.ts'
import { NodeLink } from '../../components/links.tsx'
import { QueryState } from '../../components/query-state.tsx'
import { Table, type Column } from '../../design/table.tsx'
import { mib, percent, plural, seconds, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { FIGURES, gpusOf, ranked, stepOf, type FigureName, type MapGpu } from './gpu-figures.ts'
import { HeatCanvas } from './heat-canvas.tsx'
import styles from './gpu-map.module.css'
import { MostSwaps } from './most-swaps.tsx'

/** Interval of the controller's samples. */
const AGAIN_MS = 10_000
const MAX_GPUS = 10_000
const TABLE_ROWS = 50

export function GpuMap(): JSX.Element {
  const { api, feed } = useCluster()
  const gpus = useQuery(() => ({
    // Not under `nodes`: every start of a task would repeat the request.
    queryKey: ['series', 'gpus'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<GpuListBody>('/gpus', { limit: MAX_GPUS }, signal),
    refetchInterval: AGAIN_MS,
    enabled: feed.summary() !== null,
  }))
  return (
    <section class="card" aria-label="GPUs">
      <QueryState
        query={gpus}
        isEmpty={({ total }) => total === 0}
        whenEmpty={<p class="quiet">No GPUs are registered yet.</p>}
      >
        {(body) => <Map body={body()} />}
      </QueryState>
    </section>
  )
}

function Map(props: { readonly body: GpuListBody }): JSX.Element {
  const navigate = useNavigate()
  const path = usePath()
  const [search, setSearch] = useSearchParams<{ gpus?: string }>()
  const figure = (): FigureName => FIGURES.find(({ name }) => name === search.gpus)?.name ?? 'utilization'
  const gpus = createMemo(() => gpusOf(props.body))
  const [selected, setSelected] = createSignal<number | null>(null)
  const shown = (): MapGpu | undefined => gpus()[selected() ?? -1]
  const words = (): string => {
    const gpu = shown()
    return gpu === undefined ? `${whole(gpus().length)} GPUs. Select one to see its figures.` : wordsOf(gpu)
  }
  return (
    <>
      <div class={styles['head']}>
        <h2>GPUs</h2>
        <div role="group" aria-label="Colour GPUs by" class={styles['choice']}>
          <For each={FIGURES}>
            {({ name, label }) => (
              <button
                aria-pressed={figure() === name}
                onClick={() => setSearch({ gpus: name === 'utilization' ? null : name }, { replace: true })}
              >
                {label}
              </button>
            )}
          </For>
        </div>
        <Legend figure={figure()} />
      </div>
      <HeatCanvas
        gpus={gpus()}
        stepOf={(gpu) => stepOf(figure(), gpu)}
        textOf={(gpu) => FIGURES.find(({ name }) => name === figure())?.short(gpu) ?? ''}
        selected={selected()}
        describedBy="gpu-status"
        onSelect={setSelected}
        onOpen={(gpu) => navigate(path(`/nodes/${pathSegment(gpu.nodeId)}`))}
      />
      <p id="gpu-status" class={styles['line']} role="status">
        {words()}
      </p>
      <Show when={figure() === 'swaps'}>
        <MostSwaps gpu={ranked('swaps', gpus())[0]} />
      </Show>
      <details>
        <summary>GPUs as a table</summary>
        <GpuTable
          gpus={ranked(figure(), gpus()).slice(0, TABLE_ROWS)}
          total={gpus().length}
          sortedBy={FIGURES.find(({ name }) => name === figure())?.label ?? ''}
        />
      </details>
    </>
  )
}

function wordsOf(gpu: MapGpu): string {
  return [
    `${gpu.nodeName} GPU ${gpu.index}${gpu.isUp ? '' : ' (node is not up)'}`,
    `utilization ${percent(gpu.utilization, 0)}`,
    `${mib(gpu.usedMib)} of ${mib(gpu.physicalMib)} used`,
    plural(gpu.tasks, 'task', 'tasks'),
    `${whole(gpu.swapOuts)} ${gpu.swapOuts === 1 ? 'swap-out' : 'swap-outs'} and ` +
      `${seconds(gpu.copySeconds)} of copying in the last hour`,
    `starvation ${percent(gpu.starvation, 0)}`,
  ].join(' · ')
}

function Legend(props: { readonly figure: FigureName }): JSX.Element {
  const steps = () => FIGURES.find(({ name }) => name === props.figure)?.steps ?? []
  return (
    <ul class={styles['legend']} aria-label="Colours">
      <For each={steps()}>
        {(step, at) => (
          <li>
            <i class={styles[`heat${at()}`]} />
            {step}
          </li>
        )}
      </For>
      <li>
        <i class={styles['unknown']} />
        unknown
      </li>
    </ul>
  )
}

const COLUMNS: readonly Column<MapGpu>[] = [
  { name: 'Node', cell: (row) => <NodeLink id={row().nodeId} name={row().nodeName} /> },
  { name: 'GPU', isNumber: true, cell: (row) => <>{row().index}</> },
  { name: 'Model', cell: (row) => <span class="text">{row().model}</span> },
  { name: 'Utilization', isNumber: true, cell: (row) => <>{percent(row().utilization, 0)}</> },
  { name: 'Used', isNumber: true, cell: (row) => <>{mib(row().usedMib)}</> },
  { name: 'Physical', isNumber: true, cell: (row) => <>{mib(row().physicalMib)}</> },
  { name: 'Swapped out', isNumber: true, cell: (row) => <>{mib(row().outMib)}</> },
  {
    name: 'Swap-outs, 1 h',
    help: 'Swap-outs that were completed in the last hour',
    isNumber: true,
    cell: (row) => <>{whole(row().swapOuts)}</>,
  },
  {
    name: 'Copying, 1 h',
    help: 'Total duration of the swap-out and swap-in copies that ended in the last hour',
    isNumber: true,
    cell: (row) => <>{seconds(row().copySeconds)}</>,
  },
  {
    name: 'GPU time lost, 1 h',
    help: 'GPU time that its tasks wanted but did not get in the last hour',
    isNumber: true,
    cell: (row) => <>{seconds(row().lostSeconds)}</>,
  },
]

function GpuTable(props: {
  readonly gpus: readonly MapGpu[]
  readonly total: number
  readonly sortedBy: string
}): JSX.Element {
  return (
    <>
      <Table name="GPUs" columns={COLUMNS} rows={props.gpus} idOf={({ key }) => key} />
      <Show when={props.total > props.gpus.length}>
        <p class="quiet">
          Showing {whole(props.gpus.length)} of {whole(props.total)} GPUs, sorted by {props.sortedBy} in
          descending order.
        </p>
      </Show>
    </>
  )
}
