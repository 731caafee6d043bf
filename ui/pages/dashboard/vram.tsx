/** The figures of VRAM as two bars on one scale: what is used, and what is allocated. */
import { For, Show, type JSX } from 'solid-js'
import type { SummaryBody } from '../../../controller/api/observe/summary-schema.ts'
import { Tooltip } from '../../design/tooltip.tsx'
import { mib, whole } from '../../format/figures.ts'
import { useCluster } from '../../state/cluster.tsx'
import { HELPS } from './helps.ts'
import styles from './vram.module.css'

type Vram = SummaryBody['vram']

const FIGURES: readonly {
  readonly name: string
  readonly key?: 'used' | 'allocated' | 'out' | 'physical' | 'schedulable'
  readonly of: keyof Vram['up']
  readonly help: string
}[] = [
  { name: 'Physical VRAM', key: 'physical', of: 'physical_mib', help: HELPS.physical },
  { name: 'Used VRAM', key: 'used', of: 'used_mib', help: HELPS.used },
  { name: 'Allocated VRAM', key: 'allocated', of: 'committed_mib', help: HELPS.allocated },
  { name: 'Schedulable VRAM', key: 'schedulable', of: 'effective_schedulable_mib', help: HELPS.schedulable },
  { name: 'Swapped out', key: 'out', of: 'swapped_mib', help: HELPS.swapped },
]

export function VramCard(): JSX.Element {
  const { feed } = useCluster()
  const vram = () => feed.summary()?.vram
  const overcommit = () => feed.summary()?.overcommit
  const hasDown = (): boolean => (feed.summary()?.nodes.up ?? 0) < (feed.summary()?.nodes.total ?? 0)
  return (
    <section class="card" aria-label="VRAM">
      <div class="row">
        <h2>VRAM</h2>
        <span class="quiet">
          overcommit {overcommit()?.default_percent ?? '—'}%,{' '}
          {overriding(overcommit()?.nodes_with_override ?? 0)}
        </span>
      </div>
      <Show when={vram()}>{(figures) => <Bars vram={figures()} />}</Show>
      <div class={styles['figures']}>
        <For each={FIGURES}>
          {(figure) => (
            <section aria-label={figure.name}>
              <h3>
                <i class={styles[figure.key ?? '']} />
                {figure.name}
                <Tooltip name={`How ${figure.name} is computed`}>{figure.help}</Tooltip>
              </h3>
              <p title={`${whole(vram()?.[figure.of])} MiB`}>{mib(vram()?.[figure.of])}</p>
              <Show when={hasDown()}>
                <small class="quiet">{mib(vram()?.up[figure.of])} on nodes that are up</small>
              </Show>
            </section>
          )}
        </For>
      </div>
    </section>
  )
}

/** The bars have no text of their own: the figures below have it. */
function Bars(props: { readonly vram: Vram }): JSX.Element {
  const scale = (): number =>
    Math.max(
      1,
      props.vram.physical_mib,
      props.vram.effective_schedulable_mib,
      props.vram.committed_mib,
      props.vram.used_mib,
    )
  const share = (value: number): number => (100 * value) / scale()
  const inVram = (): number => Math.max(0, props.vram.committed_mib - props.vram.swapped_mib)
  return (
    <svg class={styles['bars']} viewBox="0 0 100 22" preserveAspectRatio="none" aria-hidden="true">
      <defs>
        <pattern id="headroom" width="1.2" height="6" patternUnits="userSpaceOnUse">
          <rect class={styles['hatch']} width="0.4" height="6" />
        </pattern>
      </defs>
      <rect class={styles['track']} y="1" height="9" width={share(props.vram.physical_mib)} />
      <rect class={styles['used']} y="1" height="9" width={share(props.vram.used_mib)} />
      <rect
        class={styles['foreign']}
        y="1"
        height="9"
        x={share(props.vram.resident_mib)}
        width={share(props.vram.foreign_mib)}
      />
      <rect class={styles['track']} y="12" height="9" width={share(props.vram.physical_mib)} />
      <rect
        fill="url(#headroom)"
        y="12"
        height="9"
        x={share(props.vram.physical_mib)}
        width={Math.max(0, share(props.vram.effective_schedulable_mib - props.vram.physical_mib))}
      />
      <rect class={styles['allocated']} y="12" height="9" width={share(inVram())} />
      <rect
        class={styles['out']}
        y="12"
        height="9"
        x={share(inVram())}
        width={share(Math.min(props.vram.swapped_mib, props.vram.committed_mib))}
      />
      <Line class={styles['physical']} at={share(props.vram.physical_mib)} />
      <Line class={styles['schedulable']} at={share(props.vram.effective_schedulable_mib)} />
    </svg>
  )
}

function Line(props: { readonly at: number; readonly class: string | undefined }): JSX.Element {
  const x = (): number => Math.min(99.8, props.at)
  return <line class={props.class} x1={x()} x2={x()} y1="0" y2="22" vector-effect="non-scaling-stroke" />
}

function overriding(nodes: number): string {
  if (nodes === 0) return 'no node overrides it'
  return nodes === 1 ? '1 node overrides it' : `${whole(nodes)} nodes override it`
}
