/**
 * A page whose script is fetched on first use. A failed fetch is retried periodically and on request. The
 * lazy loading of the router would block every navigation until the fetch ends, and would remember a failure
 * until the page is reloaded.
 */
import { useLocation } from '@solidjs/router'
import {
  createEffect,
  createSignal,
  ErrorBoundary,
  on,
  onCleanup,
  onMount,
  Show,
  type Component,
  type JSX,
  type ParentProps,
} from 'solid-js'
import { Dynamic } from 'solid-js/web'

const AGAIN_MS = 2_000
/** Some browsers remember a failed script for as long as the document exists. */
const RELOAD_OFFERED_AFTER = 3

type Page = Component<ParentProps>

export interface LazyPage extends Page {
  /** Fetches the script; rejects on failure. */
  preload(): Promise<void>
}

export function lazyPage(load: () => Promise<{ readonly default: Page }>): LazyPage {
  const [page, setPage] = createSignal<Page | null>(null)
  const [failures, setFailures] = createSignal(0)
  let loading: Promise<void> | null = null
  const fetchScript = (): Promise<void> => {
    loading ??= load().then(
      ({ default: loaded }) => void setPage(() => loaded),
      (error: unknown) => {
        loading = null
        setFailures((before) => before + 1)
        throw error
      },
    )
    return loading
  }
  const Lazy: Page = (props) => {
    const attempt = (): void => void fetchScript().catch(() => {})
    attempt()
    // After the script has loaded this does nothing.
    const timer = setInterval(attempt, AGAIN_MS)
    onCleanup(() => clearInterval(timer))
    return (
      <Show when={page()} fallback={<NotFetched failures={failures()} onAgain={attempt} />}>
        {(loaded) => (
          <PageFaults>
            <Dynamic component={loaded()} {...props} />
          </PageFaults>
        )}
      </Show>
    )
  }
  return Object.assign(Lazy, { preload: fetchScript })
}

function NotFetched(props: { readonly failures: number; readonly onAgain: () => void }): JSX.Element {
  return (
    <Show
      when={props.failures > 0}
      fallback={
        <p class="quiet" aria-busy="true">
          Loading…
        </p>
      }
    >
      <div class="card stack" role="alert">
        <p class="bad">
          This page could not be loaded: the controller does not respond. The page retries every 2 seconds.
        </p>
        <p class="row">
          <button onClick={() => props.onAgain()}>Try again</button>
          <Show when={props.failures >= RELOAD_OFFERED_AFTER}>
            <button onClick={() => location.reload()}>Reload the application</button>
          </Show>
        </p>
      </div>
    </Show>
  )
}

/** Keeps navigation and the other pages working when one page fails. */
export function PageFaults(props: ParentProps): JSX.Element {
  return (
    <ErrorBoundary fallback={(error: unknown, reset) => <Failed error={error} onReset={reset} />}>
      {props.children}
    </ErrorBoundary>
  )
}

function Failed(props: { readonly error: unknown; readonly onReset: () => void }): JSX.Element {
  const location = useLocation()
  createEffect(
    on(
      () => location.pathname,
      () => props.onReset(),
      { defer: true },
    ),
  )
  onMount(() => console.error(props.error))
  return (
    <div class="card stack" role="alert">
      <p class="bad text">
        An error occurred on this page:{' '}
        {props.error instanceof Error ? props.error.message : String(props.error)}
      </p>
      <p class="row">
        <button onClick={() => props.onReset()}>Try again</button>
        <button onClick={() => window.location.reload()}>Reload the application</button>
      </p>
    </div>
  )
}
