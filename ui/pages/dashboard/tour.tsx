/** An introduction in four steps for new users; dismissed permanently in this browser. */
import { createSignal, Show, type JSX } from 'solid-js'

const KEY = 'headroom-tour-over'
const STEPS: readonly (readonly [title: string, text: string])[] = [
  [
    'The tiles',
    'show utilization, starvation, and four different figures of VRAM. Each has a “?” with its formula.',
  ],
  [
    'The charts',
    'share one time axis. Drag to zoom in, “Resume live” to return. A blue line is a configuration change.',
  ],
  [
    'Wait reasons',
    'counts the pending tasks by reason, with links to them. The page of a task explains its state in ' +
      'one sentence.',
  ],
  ['Settings', 'change how much VRAM may be overcommitted. Every change is planned first and can be undone.'],
]

export function Tour(): JSX.Element {
  const [isOver, setOver] = createSignal(localStorage.getItem(KEY) !== null)
  const [step, setStep] = createSignal(0)
  const dismiss = (): void => {
    localStorage.setItem(KEY, 'yes')
    setOver(true)
  }
  return (
    <Show when={!isOver()}>
      <section class="card" aria-label="Tour">
        <h2>
          {step() + 1} of {STEPS.length}: {STEPS[step()]?.[0]}
        </h2>
        <p>
          {STEPS[step()]?.[0]} {STEPS[step()]?.[1]}
        </p>
        <p class="row">
          <Show when={step() < STEPS.length - 1} fallback={<button onClick={dismiss}>Done</button>}>
            <button onClick={() => setStep(step() + 1)}>Next</button>
          </Show>
          <button onClick={dismiss}>Do not show again</button>
        </p>
      </section>
    </Show>
  )
}
