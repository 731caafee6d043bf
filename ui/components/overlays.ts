/** Overlays that a key opens over every page: the palette, and the list of keys. Fetched on first use. */
import { createSignal, type Accessor, type Component } from 'solid-js'
import { toast } from '../design/toast.tsx'

interface OverlayProps {
  readonly pages: readonly { readonly path: string; readonly name: string }[]
  /** @param hasMoved another page is shown: the focus goes to it, not back */
  readonly onClose: (hasMoved: boolean) => void
  /** The text that was typed before the field of the overlay had the focus. */
  readonly typed: string
  /** Its field has the focus: it receives what is typed from now on. */
  readonly onFocus: () => void
}
type Overlay = Component<OverlayProps>

const SCRIPTS = {
  palette: () => import('./palette/palette.tsx'),
  keys: () => import('./keys-dialog.tsx'),
} as const

export interface Overlays {
  /** null: none. */
  readonly open: Accessor<Overlay | null>
  /** The text that was typed before the field of the open overlay had the focus. */
  readonly typed: Accessor<string>
  /** The field has the focus. */
  focused(): void
  show(name: keyof typeof SCRIPTS): void
  close(hasMoved: boolean): void
}

export function createOverlays(): Overlays {
  const [open, setOpen] = createSignal<Overlay | null>(null)
  const [typed, setTyped] = createSignal('')
  let before: Element | null = null
  let isLoading = false
  const keepKey = (event: KeyboardEvent): void => {
    if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey) return
    setTyped((text) => text + event.key)
    event.preventDefault()
    event.stopPropagation()
  }
  const focused = (): void => window.removeEventListener('keydown', keepKey, { capture: true })
  const show = async (name: keyof typeof SCRIPTS): Promise<void> => {
    if (open() !== null || isLoading) return
    isLoading = true
    before = document.activeElement
    setTyped('')
    if (name === 'palette') window.addEventListener('keydown', keepKey, { capture: true })
    try {
      const { default: overlay } = await SCRIPTS[name]()
      setOpen(() => overlay)
    } catch {
      focused()
      toast({ text: 'The dialog could not be loaded: the controller does not respond.' })
    } finally {
      isLoading = false
    }
  }
  const close = (hasMoved: boolean): void => {
    setOpen(null)
    focused()
    // Unless the new page has taken the focus meanwhile.
    setTimeout(() => {
      if (document.activeElement !== document.body) return
      const main = document.getElementById('main')
      const back = hasMoved || before?.isConnected !== true ? main : before
      if (back instanceof HTMLElement) back.focus({ preventScroll: true })
    })
  }
  return { open, typed, focused, show: (name) => void show(name), close }
}
