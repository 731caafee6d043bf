/** What is opened over every page by a key: the palette, and the list of keys. Fetched on first use. */
import { createSignal, type Accessor, type Component } from 'solid-js'
import { toast } from '../design/toast.tsx'

interface OverlayProps {
  readonly pages: readonly { readonly path: string; readonly name: string }[]
  /** @param hasMoved another page is shown: the focus goes to it, not back */
  readonly onClose: (hasMoved: boolean) => void
}
type Overlay = Component<OverlayProps>

const SCRIPTS = {
  palette: () => import('./palette/palette.tsx'),
  keys: () => import('./keys-dialog.tsx'),
} as const

export interface Overlays {
  /** null: none. */
  readonly open: Accessor<Overlay | null>
  show(name: keyof typeof SCRIPTS): void
  close(hasMoved: boolean): void
}

export function createOverlays(): Overlays {
  const [open, setOpen] = createSignal<Overlay | null>(null)
  let before: Element | null = null
  const show = async (name: keyof typeof SCRIPTS): Promise<void> => {
    if (open() !== null) return
    before = document.activeElement
    try {
      const { default: overlay } = await SCRIPTS[name]()
      setOpen(() => overlay)
    } catch {
      toast({ text: 'This could not be loaded: the controller does not respond.' })
    }
  }
  const close = (hasMoved: boolean): void => {
    setOpen(null)
    // Unless the new page has taken the focus meanwhile.
    setTimeout(() => {
      if (document.activeElement !== document.body) return
      const main = document.getElementById('main')
      const back = hasMoved || before?.isConnected !== true ? main : before
      if (back instanceof HTMLElement) back.focus({ preventScroll: true })
    })
  }
  return { open, show: (name) => void show(name), close }
}
