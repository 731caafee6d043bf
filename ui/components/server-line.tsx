/**
 * The command that adds a GPU server to this cluster, to be copied; a trial takes simulated servers. The
 * Clipboard API needs a secure context, which this page seldom has.
 */
import { createSignal, Show, type JSX } from 'solid-js'
import { brokerFor } from '../format/broker.ts'
import { useCluster } from '../state/cluster.tsx'
import { useStoreKind } from '../state/store-kind.ts'

export function ServerLine(): JSX.Element {
  const { feed } = useCluster()
  const kind = useStoreKind()
  const [isCopied, setCopied] = createSignal(false)
  const broker = () => brokerFor(feed.summary()?.broker_urls ?? [], location.hostname)
  let line: HTMLPreElement | undefined
  const copy = (): void => {
    if (line === undefined) return
    getSelection()?.selectAllChildren(line)
    setCopied(document.execCommand('copy'))
  }
  return (
    <>
      <Show when={kind() === 'trial'}>
        <p>
          This controller runs a trial: instead of a real GPU server, start the simulated servers of a
          scenario.
        </p>
      </Show>
      <pre tabindex="0" ref={(element) => (line = element)}>
        {kind() === 'trial'
          ? `headroom sim serve SCENARIO --nats ${broker().url}`
          : `CONTROLLER_NATS_URL=${broker().url} NODE_NAME=gpu-1 headroom gpu-server --allow-exec`}
      </pre>
      <p class="row">
        <button onClick={copy}>Copy command</button>
        <span role="status">{isCopied() ? 'Copied.' : ''}</span>
      </p>
      <p class="quiet">
        <Show
          when={broker().isKnown}
          fallback={
            'The controller has not reported the address of its broker, so this address is a guess. The ' +
            'port is 4222, or 30422 if Compose or Kubernetes publishes it.'
          }
        >
          This is the broker address that the controller uses. If Compose or Kubernetes publishes the broker
          on another port (30422), use that port on the GPU host.
        </Show>{' '}
        If the broker requires keys, set CONTROLLER_NATS_NKEY_FILE as well.
      </p>
    </>
  )
}
