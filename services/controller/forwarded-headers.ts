/** Header fields of a request that a standby forwards to the leader, and of its answer. */
import { isIPv6, type BlockList } from 'node:net'

/** Set by a standby, so that a request is forwarded once. */
export const FORWARDED = 'headroom-forwarded'

/** RFC 9110, 7.6.1: for one connection only. */
const OF_CONNECTION = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade', 'expect', 'http2-settings'],
])

/** Without those of the connection. @param raw names and values in turn */
export function endToEnd(raw: readonly string[]): string[] {
  return fieldsOf(raw, (name) => !OF_CONNECTION.has(name))
}

/**
 * Only proxies that are trusted may say where a request comes from; of others the address counts.
 * @param address of the sender
 */
export function forwardedFields(
  raw: readonly string[],
  address: string,
  proxies: BlockList,
  by: string,
): string[] {
  const isProxy = proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
  const kept = fieldsOf(
    endToEnd(raw),
    (name) => isProxy || !(name === 'forwarded' || name.startsWith('x-forwarded-')),
  )
  const before = isProxy ? valuesOf(kept, 'x-forwarded-for') : []
  return [
    ...fieldsOf(kept, (name) => name !== 'x-forwarded-for' && name !== FORWARDED),
    ...['X-Forwarded-For', [...before, address].join(', ')],
    ...[FORWARDED, by],
  ]
}

function fieldsOf(raw: readonly string[], isKept: (name: string) => boolean): string[] {
  const fields: string[] = []
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = '', value = ''] = [raw[i], raw[i + 1]]
    if (isKept(name.toLowerCase())) fields.push(name, value)
  }
  return fields
}

function valuesOf(raw: readonly string[], wanted: string): string[] {
  return raw.filter((_, i) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === wanted)
}
