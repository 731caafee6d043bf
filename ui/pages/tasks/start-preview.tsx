/** Where and when a task would start, asked while it is typed: one request at a time. */
import { createEffect, createSignal, on, onCleanup, Show, type JSX } from 'solid-js'
import type { PlacementPreviewBody } from '../../../controller/api/tasks/preview-schema.ts'
import type { TaskRequestBody } from '../../../controller/api/tasks/schema.ts'
import { Prose } from '../../components/prose.tsx'
import { plural, seconds } from '../../format/figures.ts'
import { noForecastWords } from '../../format/forecast.ts'
import { gpuWords } from '../../format/tasks.ts'
import { useCluster } from '../../state/cluster.tsx'
import styles from './tasks.module.css'
import { errorText } from '../../api/error-text.ts'

/** Pause in typing after which the controller is asked. */
const TYPING_MS = 300

type Request = { readonly body: TaskRequestBody } | { readonly missing: string }

export function StartPreview(props: { readonly request: Request }): JSX.Element {
  const { api } = useCluster()
  const [answer, setAnswer] = createSignal<PlacementPreviewBody | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  let timer: ReturnType<typeof setTimeout> | undefined
  let isAsking = false
  let isOutdated = false
  const ask = async (): Promise<void> => {
    const { request } = props
    if (isAsking) {
      isOutdated = true
      return
    }
    if ('missing' in request) return
    isAsking = true
    isOutdated = false
    const of = (forecast: boolean) =>
      api.send<PlacementPreviewBody>('POST', '/tasks', {
        query: { dry_run: true, ...(forecast ? { forecast } : {}) },
        body: request.body,
      })
    try {
      const { body } = await of(false)
      setAnswer(body)
      setProblem(null)
      if (body.starts !== 'now' && !isOutdated) setAnswer((await of(true)).body)
    } catch (error) {
      setAnswer(null)
      setProblem(errorText(error))
    }
    isAsking = false
    if (isOutdated) void ask()
  }
  createEffect(
    on(
      () => JSON.stringify(props.request),
      () => {
        clearTimeout(timer)
        timer = setTimeout(() => void ask(), TYPING_MS)
      },
    ),
  )
  onCleanup(() => clearTimeout(timer))
  return (
    <div class={styles['answer']} data-starts={answer()?.starts} role="status" id="start-preview">
      <Show
        when={answer()}
        fallback={<p class={problem() === null ? 'quiet' : 'bad'}>{problem() ?? 'Checking placement…'}</p>}
      >
        {(preview) => <Words preview={preview()} />}
      </Show>
    </div>
  )
}

function Words(props: { readonly preview: PlacementPreviewBody }): JSX.Element {
  const where = (): string => {
    const { placement } = props.preview
    return placement === null ? '' : ` on ${placement.node_name}, GPU ${gpuWords(placement.gpus)}`
  }
  const headline = (): string => {
    const { starts, victims } = props.preview
    if (starts === 'now') return `The task would start now${where()}.`
    if (starts === 'later') return 'The task would wait.'
    return victims.length === 0
      ? `The task would start${where()} once VRAM is free.`
      : `The task would start${where()} after swapping out ${plural(victims.length, 'task', 'tasks')}.`
  }
  const estimate = (): string | null => {
    const { forecast, forecast_unavailable_because: because, starts } = props.preview
    if (starts === 'now') return null
    if (forecast === null)
      return because?.startsWith('NOT_ASKED') === true
        ? 'Estimating…'
        : `No estimate. ${noForecastWords(because)}`
    if (forecast.starts_p50 === null)
      return `The task is not expected to start within ${seconds(forecast.horizon_seconds)}.`
    const after = Math.max(0, (Date.parse(forecast.starts_p50) - Date.parse(forecast.at)) / 1000)
    return after < 60
      ? 'The task is expected to start within a minute.'
      : `The task is expected to start in about ${seconds(60 * Math.round(after / 60))}.`
  }
  return (
    <>
      <strong>{headline()}</strong>
      <Show when={props.preview.victims.length > 0}>
        <p class="text">Swap-outs: {props.preview.victims.map(({ name }) => name).join(', ')}</p>
      </Show>
      <Show when={props.preview.wait}>
        {(wait) => (
          <p>
            <Prose text={wait().sentence} />
          </p>
        )}
      </Show>
      <Show when={estimate()}>{(words) => <p class="quiet">{words()}</p>}</Show>
    </>
  )
}
