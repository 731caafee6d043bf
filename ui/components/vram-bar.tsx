/** Used and allocated VRAM as bars, physical and schedulable VRAM as lines. The text has all four figures. */
import type { JSX } from 'solid-js'
import type { Vram } from '../../controller/api/nodes/schema.ts'
import { mib } from '../format/figures.ts'
import styles from './vram-bar.module.css'

type Figures = Pick<Vram, 'used_mib' | 'committed_mib' | 'effective_schedulable_mib' | 'physical_mib'>

function vramWords(vram: Figures): string {
  return [
    `used ${mib(vram.used_mib)}`,
    `allocated ${mib(vram.committed_mib)}`,
    `schedulable ${mib(vram.effective_schedulable_mib)}`,
    `physical ${mib(vram.physical_mib)}`,
  ].join(', ')
}

export function VramBar(props: { readonly vram: Figures }): JSX.Element {
  const whole = (): number =>
    Math.max(
      1,
      props.vram.effective_schedulable_mib,
      props.vram.physical_mib,
      props.vram.committed_mib,
      props.vram.used_mib,
    )
  const share = (value: number): number => (100 * value) / whole()
  return (
    <svg
      class={styles['bar']}
      viewBox="0 0 100 16"
      preserveAspectRatio="none"
      role="img"
      aria-label={vramWords(props.vram)}
    >
      <title>{vramWords(props.vram)}</title>
      <rect class={styles['track']} x="0" y="0" width="100" height="16" />
      <rect class={styles['allocated']} x="0" y="2" width={share(props.vram.committed_mib)} height="12" />
      <rect class={styles['used']} x="0" y="5" width={share(props.vram.used_mib)} height="6" />
      <Line at={share(props.vram.physical_mib)} class={styles['physical']} />
      <Line at={share(props.vram.effective_schedulable_mib)} class={styles['schedulable']} />
    </svg>
  )
}

function Line(props: { readonly at: number; readonly class: string | undefined }): JSX.Element {
  const x = (): number => Math.min(99.5, props.at)
  return <line class={props.class} x1={x()} x2={x()} y1="0" y2="16" vector-effect="non-scaling-stroke" />
}
