/** Addresses on which a command listens, in its options and in its first line. */
import { UsageError } from '../../services/exit-codes.ts'
import { addressIn, type ReplicaAddress } from '../../services/gateway/replica.ts'

/** @throws UsageError */
export function addressOf(option: string, text: string): ReplicaAddress {
  const where = addressIn(text)
  if (where !== null && where.port <= 65_535) return where
  throw new UsageError(`${option}: ${JSON.stringify(text)} must be ADDRESS:PORT, for example 0.0.0.0:30081`)
}

export function addressText({ host }: ReplicaAddress, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Address of a server to call. */
export function hostAndPort(option: string, text: string): ReplicaAddress {
  const [, host = '', port = ''] = /^([A-Za-z0-9.-]{1,253}):(\d{1,5})$/.exec(text) ?? []
  if (host !== '' && Number(port) <= 65_535) return { host, port: Number(port) }
  throw new UsageError(`${option}: ${JSON.stringify(text)} must be HOST:PORT`)
}
