/** An explanation behind a question mark: it closes with Esc, outside clicks, and when another one opens. */
import { createUniqueId, type JSX } from 'solid-js'
import styles from './tooltip.module.css'

export interface TooltipProps {
  /** Accessible name of the button. */
  readonly name: string
  readonly children: JSX.Element
}

const MARGIN_PX = 8

export function Tooltip(props: TooltipProps): JSX.Element {
  const id = createUniqueId()
  let button!: HTMLButtonElement
  let text!: HTMLDivElement
  /** Below the button, inside the window. */
  const place = (): void => {
    const { left, bottom } = button.getBoundingClientRect()
    const most = innerWidth - text.offsetWidth - MARGIN_PX
    text.style.left = `${Math.max(MARGIN_PX, Math.min(left, most))}px`
    text.style.top = `${Math.min(bottom + 4, innerHeight - text.offsetHeight - MARGIN_PX)}px`
  }
  return (
    <>
      <button
        ref={button}
        type="button"
        class={styles['button']}
        aria-label={props.name}
        onClick={() => text.togglePopover()}
        aria-controls={id}
      >
        ?
      </button>
      <div ref={text} id={id} popover class={styles['text']} onToggle={place}>
        {props.children}
      </div>
    </>
  )
}
