/**
 * The line that puts a GPU server into this cluster, to be copied; a trial takes simulated servers. The clipboard's own interface is there in
 * secure contexts only, which this page seldom is.
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
        <p>This controller runs a trial: instead, the simulated servers of a scenario join.</p>
      </Show>
      <pre tabindex="0" ref={(element) => (line = element)}>
        {kind() === 'trial'
          ? `headroom sim serve SCENARIO --nats ${broker().url}`
          : `CONTROLLER_NATS_URL=${broker().url} NODE_NAME=gpu-1 headroom gpu-server --allow-exec`}
      </pre>
      <p class="row">
        <button onClick={copy}>Copy the line</button>
        <span role="status">{isCopied() ? 'Copied.' : ''}</span>
      </p>
      <p class="quiet">
        <Show
          when={broker().isKnown}
          fallback="The controller has not told its broker: the address is a guess. The port is 4222, or 30422 where compose or Kubernetes publishes it."
        >
          The address is that of the controller. Where compose or Kubernetes publishes the broker under
          another port, the GPU host needs that one (30422).
        </Show>{' '}
        A broker that asks for keys needs CONTROLLER_NATS_NKEY_FILE as well.
      </p>
    </>
  )
}
