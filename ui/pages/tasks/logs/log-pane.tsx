/** The lines of one stream. Only those in view are in the document; the end stays in view while it grows. */
import { createEffect, createMemo, createSignal, For, on, onCleanup, onMount, type JSX } from 'solid-js'
import { rowWindow } from '../../../design/row-window.ts'
import type { LogLine } from './log-lines.ts'
import { markedSpans, type LogMatch } from './log-search.ts'
import styles from './logs.module.css'

/** Same value as in the style sheet. */
const LINE_PX = 20

export interface LogPaneProps {
  readonly name: string
  readonly lines: readonly LogLine[]
  /** Text that is marked. */
  readonly wanted: string
  /** The match that is shown; null: the end. */
  readonly current: LogMatch | null
}

export function LogPane(props: LogPaneProps): JSX.Element {
  const [top, setTop] = createSignal(0)
  const [height, setHeight] = createSignal(0)
  let box!: HTMLDivElement
  let all!: HTMLDivElement
  let inView!: HTMLDivElement
  let isAtEnd = true
  const toEnd = (): void => {
    box.scrollTop = box.scrollHeight
  }
  const range = createMemo(() => rowWindow(top(), height(), LINE_PX, props.lines.length))
  onMount(() => {
    const observer = new ResizeObserver(() => {
      setHeight(box.clientHeight)
      if (isAtEnd) toEnd()
    })
    observer.observe(box)
    onCleanup(() => observer.disconnect())
  })
  createEffect(() => {
    all.style.height = `${props.lines.length * LINE_PX}px`
    inView.style.transform = `translateY(${range().first * LINE_PX}px)`
  })
  createEffect(
    on(
      () => props.lines,
      () => isAtEnd && toEnd(),
    ),
  )
  createEffect(() => {
    const match = props.current
    if (match !== null) box.scrollTop = match.line * LINE_PX - box.clientHeight / 2
  })
  const onScroll = (): void => {
    setTop(box.scrollTop)
    isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - LINE_PX
  }
  return (
    <div
      ref={box}
      class={styles['pane']}
      tabindex="0"
      role="group"
      aria-label={`${props.name} of the task`}
      onScroll={onScroll}
    >
      <div class={styles['lines']} ref={all}>
        <div ref={inView}>
          <For each={props.lines.slice(range().first, range().end)}>
            {(line, at) => (
              <Line
                line={line}
                wanted={props.wanted}
                isCurrent={props.current?.line === range().first + at()}
              />
            )}
          </For>
        </div>
      </div>
    </div>
  )
}

interface LineProps {
  readonly line: LogLine
  readonly wanted: string
  readonly isCurrent: boolean
}

function Line(props: LineProps): JSX.Element {
  return (
    <div class={styles['line']} data-current={props.isCurrent ? '' : undefined}>
      <For each={markedSpans(props.line, props.wanted)}>
        {(span) => {
          const look = {
            class: styles['span'],
            'data-colour': span.colour ?? undefined,
            'data-bold': span.isBold ? '' : undefined,
            'data-underlined': span.isUnderlined ? '' : undefined,
          }
          return span.isMarked ? <mark {...look}>{span.text}</mark> : <span {...look}>{span.text}</span>
        }}
      </For>
    </div>
  )
}
