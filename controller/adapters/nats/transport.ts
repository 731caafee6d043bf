/**
 * The socket under a connection, with the two ends that the library's own leaves open when a broker hangs.
 */
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js'
import { NatsConnectionImpl, setTransportFactory } from '@nats-io/transport-node'
import type { ConnectionOptions } from '@nats-io/transport-node'

class DecidedTransport extends NodeTransport {
  /** A connection that was never made (a broker that accepts and says nothing) is closed too. */
  override async close(error?: Error): Promise<void> {
    if (this.connected) await super.close(error)
    else this.discard()
  }

  /** A broker that answers no ping does not read either: nothing that is unsent is waited for. */
  override disconnect(): void {
    this.socket.destroy()
  }
}

/** Rejects when there is no connection; never tries again by itself. */
export async function dial(options: ConnectionOptions): Promise<NatsConnectionImpl> {
  setTransportFactory({ factory: () => new DecidedTransport(), dnsResolveFn: nodeResolveHost })
  return (await NatsConnectionImpl.connect({ ...options, reconnect: false })) as NatsConnectionImpl
}

/** Bytes that were published and that the kernel has not taken. */
export function unsentBytes(connection: NatsConnectionImpl): number {
  const { transport, outbound } = connection.protocol
  return outbound.size() + ((transport as Partial<NodeTransport>).socket?.writableLength ?? 0)
}
