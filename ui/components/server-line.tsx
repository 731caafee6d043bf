/** The line that puts a GPU server into this cluster, to be copied. The clipboard's own interface is there in secure contexts only, which this page seldom is. */
import { createSignal, type JSX } from 'solid-js'

export function ServerLine(): JSX.Element {
  const [isCopied, setCopied] = createSignal(false)
  let line: HTMLPreElement | undefined
  const copy = (): void => {
    if (line === undefined) return
    getSelection()?.selectAllChildren(line)
    setCopied(document.execCommand('copy'))
  }
  return (
    <>
      <pre tabindex="0" ref={(element) => (line = element)}>
        CONTROLLER_NATS_URL=nats://{location.hostname}:4222 NODE_NAME=gpu-1 headroom gpu-server --allow-exec
      </pre>
      <p class="row">
        <button onClick={copy}>Copy the line</button>
        <span role="status">{isCopied() ? 'Copied.' : ''}</span>
      </p>
      <p class="quiet">
        The broker is taken to be on the controller's host. Its port is 4222, or 30422 where compose or Kubernetes publishes it. A broker
        that asks for keys wants CONTROLLER_NATS_NKEY_FILE as well.
      </p>
    </>
  )
}
