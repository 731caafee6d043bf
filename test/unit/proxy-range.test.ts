import { expect, test } from 'vitest'
import { proxyAddress, proxyPorts } from '../../cli/gpu-server/option-values.ts'
import { proxyRangeOf } from '../../services/gpu-server/proxy-range.ts'

const PORTS = { from: 30_100, to: 30_199 }

test('A server has proxies only with ports and an address, and options go before variables', async () => {
  expect(await proxyRangeOf({}, {})).toBe(null)
  const env = { NODE_PROXY_PORTS: '30100-30199', NODE_PROXY_ADDRESS: '127.0.0.1' }
  expect(await proxyRangeOf({}, env)).toEqual({ address: '127.0.0.1', ports: PORTS })
  const options = { proxyPorts: { from: 2000, to: 2000 } }
  expect(await proxyRangeOf(options, env)).toEqual({ address: '127.0.0.1', ports: options.proxyPorts })
})

test.each([
  [{ proxyPorts: PORTS }, {}, '--proxy-ports requires --proxy-address'],
  [{ proxyAddress: '127.0.0.1' }, {}, '--proxy-address requires --proxy-ports'],
  [{ proxyPorts: PORTS, proxyAddress: '192.0.2.1' }, {}, '192.0.2.1: cannot listen there (EADDRNOTAVAIL)'],
  [{}, { NODE_PROXY_PORTS: '80-90' }, 'NODE_PROXY_PORTS'],
  [{}, { NODE_PROXY_ADDRESS: '0.0.0.0' }, 'NODE_PROXY_ADDRESS'],
] as const)('Proxies at %j, %j are refused', async (options, env, why) => {
  await expect(proxyRangeOf(options, env)).rejects.toThrow(why)
})

test.each(['', '30100', '30199-30100', '1023-2000', '30100-65536', '30100-', 'a-b', ' 30100-30199'])(
  'The option --proxy-ports refuses %j',
  (text) => {
    expect(() => proxyPorts(text)).toThrow('It must be a range of ports from 1024 to 65535')
  },
)

test.each(['', 'localhost', '0.0.0.0', '::', '::0', 'fe80::1%eth0', '10.0.0.1:80', '0'])(
  'The option --proxy-address refuses %j',
  (text) => {
    expect(() => proxyAddress(text)).toThrow('It must be an IP address of the host')
  },
)

test('The options accept a range, one port, and addresses of both kinds', () => {
  expect(proxyPorts('30100-30199')).toEqual(PORTS)
  expect(proxyPorts('2000-2000')).toEqual({ from: 2000, to: 2000 })
  expect(proxyAddress('10.0.0.1')).toBe('10.0.0.1')
  expect(proxyAddress('2001:db8::1')).toBe('2001:db8::1')
})
