/** The socket under a connection. It closes two cases that the library leaves open when a broker hangs. */
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js'
import { NatsConnectionImpl, setTransportFactory } from '@nats-io/transport-node'
import type { ConnectionOptions } from '@nats-io/transport-node'

class DecidedTransport extends NodeTransport {
  /** Also closes a connection that was never established (a broker that accepts and stays silent). */
  override async close(error?: Error): Promise<void> {
    if (this.connected) await super.close(error)
    else this.discard()
  }

  /** A broker that answers no ping does not read either: unsent data is not awaited. */
  override disconnect(): void {
    this.socket.destroy()
  }
}

/** Rejects if there is no connection; never retries. */
export async function dial(options: ConnectionOptions): Promise<NatsConnectionImpl> {
  setTransportFactory({ factory: () => new DecidedTransport(), dnsResolveFn: nodeResolveHost })
  return (await NatsConnectionImpl.connect({ ...options, reconnect: false })) as NatsConnectionImpl
}

/** Published bytes that the kernel has not accepted. */
export function unsentBytes(connection: NatsConnectionImpl): number {
  const { transport, outbound } = connection.protocol
  return outbound.size() + ((transport as Partial<NodeTransport>).socket?.writableLength ?? 0)
}
