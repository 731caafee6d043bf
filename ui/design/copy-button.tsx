/** Copies a text. Works without a secure context, where browsers have no clipboard interface. */
import type { JSX } from 'solid-js'
import { Icon } from './icon.tsx'
import { toast } from './toast.tsx'

export interface CopyButtonProps {
  readonly text: () => string
  /** Name of the copied content, for example `JSON`. */
  readonly what: string
}

export function CopyButton(props: CopyButtonProps): JSX.Element {
  let button!: HTMLButtonElement
  const copy = async (): Promise<void> => {
    const isCopied = await copied(props.text(), button)
    toast({ text: isCopied ? `Copied ${props.what}.` : 'The browser does not allow copying.' })
  }
  return (
    <button ref={button} type="button" onClick={() => void copy()}>
      <Icon of="copy" />
      Copy {props.what}
    </button>
  )
}

async function copied(text: string, nextTo: HTMLElement): Promise<boolean> {
  // Missing on pages that were not served over HTTPS or from localhost.
  const clipboard = navigator.clipboard as Clipboard | undefined
  if (clipboard !== undefined) {
    try {
      await clipboard.writeText(text)
      return true
    } catch {
      // The API is not permitted. The older API may be.
    }
  }
  const field = document.createElement('textarea')
  field.value = text
  field.className = 'visually-hidden'
  // Inside a dialog, the focus cannot leave it.
  nextTo.after(field)
  field.select()
  // Deprecated, and the only way without a secure context.
  const isCopied = document.execCommand('copy')
  field.remove()
  nextTo.focus()
  return isCopied
}
