/** The address of the broker, for a GPU host. Pure. */

const DEFAULT_PORT = '4222'

export interface BrokerAddress {
  readonly url: string
  /** The controller has told it; else it is a guess. */
  readonly isKnown: boolean
}

/**
 * An address that only the controller's own host can reach is told with the name by which this page was
 * reached. @param urls as the controller has them
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
