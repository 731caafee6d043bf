/** The one tooltip of all charts that share a crosshair. The status line says the same for its own chart. */
import { createEffect, For, Show, type JSX } from 'solid-js'
import type { Readout } from './shared-cursor.ts'
import styles from './chart-tooltip.module.css'

export interface TooltipContent {
  readonly time: string
  readonly readouts: readonly Readout[]
  /** Titles of the annotations at this instant. */
  readonly marks: readonly string[]
}

export interface ChartTooltipProps {
  /** null: not shown. */
  readonly content: TooltipContent | null
  /** The crosshair, in pixels of the window. */
  readonly place: () => { readonly x: number; readonly y: number }
}

const GAP_PX = 16

export function ChartTooltip(props: ChartTooltipProps): JSX.Element {
  return <Show when={props.content}>{(content) => <Box {...props} content={content()} />}</Show>
}

function Box(props: ChartTooltipProps & { readonly content: TooltipContent }): JSX.Element {
  let box!: HTMLDivElement
  // On the side of the crosshair that has room, inside the window.
  createEffect(() => {
    void props.content
    const { x, y } = props.place()
    const { offsetWidth: width, offsetHeight: height } = box
    const right = x + GAP_PX
    const left = right + width > innerWidth ? x - GAP_PX - width : right
    box.style.left = `${Math.max(0, left)}px`
    box.style.top = `${Math.max(0, Math.min(y, innerHeight - height))}px`
  })
  return (
    <div class={styles['tooltip']} ref={box} aria-hidden="true">
      <strong>{props.content.time}</strong>
      <For each={props.content.marks}>{(mark) => <p class={styles['mark']}>{mark}</p>}</For>
      <table>
        <tbody>
          <For each={props.content.readouts}>
            {({ name, lines }) => (
              <For each={lines}>
                {(line, index) => (
                  <tr>
                    <td>{index() === 0 ? name : ''}</td>
                    <td>
                      <i ref={(key) => key.style.setProperty('--key', `var(${line.colour})`)} /> {line.name}
                    </td>
                    <td class="number">{line.text}</td>
                  </tr>
                )}
              </For>
            )}
          </For>
        </tbody>
      </table>
    </div>
  )
}
