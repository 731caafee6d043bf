/**
 * Bounds the connections of one client address, so that one host cannot take them all. No token is known
 * before a request has come.
 */
import type { Server } from 'node:http'
import { BlockList, isIPv6 } from 'node:net'

/**
 * Connections of one address at a time; further ones are closed at once. An IPv6 host has a /64: it counts as
 * one address.
 */
export const MAX_CONNECTIONS_PER_ADDRESS = 256

export interface ConnectionRefusals {
  /** Closed because their address had too many. */
  readonly perAddress: number
  /** Closed because the server had too many. */
  readonly inAll: number
}

/**
 * @param trustedProxies addresses and networks: many clients come through one, so that they have no limit.
 */
export function limitConnections(
  server: Server,
  trustedProxies: readonly string[],
  maxPerAddress = MAX_CONNECTIONS_PER_ADDRESS,
): ConnectionRefusals {
  const refusals = { perAddress: 0, inAll: 0 }
  const open = new Map<string, number>()
  const proxies = blockListOf(trustedProxies)
  server.on('drop', () => {
    refusals.inAll += 1
  })
  server.prependListener('connection', (socket) => {
    const address = socket.remoteAddress?.replace(/^::ffff:(?=\d+\.)/, '')
    if (address === undefined || proxies.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return
    const source = sourceOf(address)
    const count = open.get(source) ?? 0
    if (count >= maxPerAddress) {
      refusals.perAddress += 1
      socket.destroy()
      return
    }
    open.set(source, count + 1)
    socket.once('close', () => {
      const left = (open.get(source) ?? 0) - 1
      if (left > 0) open.set(source, left)
      else open.delete(source)
    })
  })
  return refusals
}

/** The address, or the first 64 bits of an IPv6 one. */
export function sourceOf(address: string): string {
  if (!isIPv6(address)) return address
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length
  return [...before, ...Array.from({ length: zeros }, () => '0'), ...after].slice(0, 4).join(':')
}

export function blockListOf(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', prefix] = network.split('/')
    const family = isIPv6(address) ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
