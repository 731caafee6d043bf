/** Title of the browser tab: the page, then the product. */
import { createEffect, createSignal, on, onCleanup, type Accessor } from 'solid-js'

/** The title that a page sets, such as the name of a task; null: the name of its list. */
const [own, setOwn] = createSignal<string | null>(null)

/** Call it once, in the frame of the page. */
export function useDocumentTitle(page: Accessor<string | null>): void {
  createEffect(() => {
    const name = own() ?? page()
    document.title = name === null ? 'Headroom' : `${name} · Headroom`
  })
}

/** The name of what the page shows, until it is left. */
export function usePageTitle(name: Accessor<string | undefined>): void {
  createEffect(on(name, (text) => setOwn(text ?? null)))
  onCleanup(() => setOwn(null))
}
