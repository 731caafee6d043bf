/** The broker address to use on a GPU host. Pure. */

const DEFAULT_PORT = '4222'

export interface BrokerAddress {
  readonly url: string
  /** Reported by the controller; otherwise a guess. */
  readonly isKnown: boolean
}

/**
 * A loopback address is replaced by the host name of this page. @param urls as the controller reports them
 */
export function brokerFor(urls: readonly string[], hostname: string): BrokerAddress {
  const [first] = urls
  if (first === undefined) return { url: `nats://${hostname}:${DEFAULT_PORT}`, isKnown: false }
  const { protocol, hostname: host, port } = new URL(first)
  const isLoopback = host === 'localhost' || host === '[::1]' || host.startsWith('127.')
  return {
    url: `${protocol}//${isLoopback ? hostname : host}:${port === '' ? DEFAULT_PORT : port}`,
    isKnown: true,
  }
}
