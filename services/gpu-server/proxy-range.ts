/** Where the proxies of a GPU server listen: `--proxy-ports` and `--proxy-address`. */
import { createServer } from 'node:net'
import type { ProxyRange } from '../../gpu-server/devices/port-proxies.ts'
import { UsageError } from '../exit-codes.ts'
import { ENVIRONMENT } from '../settings/env-table.ts'
import { valueOf } from './value-of.ts'

/** Options take precedence over variables. */
export interface ProxyOptions {
  readonly proxyPorts?: ProxyRange['ports']
  readonly proxyAddress?: string
}

/** Null: no task gets an address. Rejects with UsageError when nothing can listen there. */
export async function proxyRangeOf(
  options: ProxyOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ProxyRange | null> {
  const ports = options.proxyPorts ?? valueOf(env, ENVIRONMENT.proxyPorts)
  const address = options.proxyAddress ?? valueOf(env, ENVIRONMENT.proxyAddress)
  if (ports === null && address === null) return null
  if (address === null)
    throw new UsageError('--proxy-ports requires --proxy-address, an IP address of this host')
  if (ports === null) throw new UsageError('--proxy-address requires --proxy-ports, for example 30100-30199')
  const why = await whyNotAt(address)
  if (why !== null) throw new UsageError(`--proxy-address ${address}: cannot listen there (${why})`)
  return { address, ports }
}

function whyNotAt(address: string): Promise<string | null> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
    server.listen({ host: address, port: 0 }, () => server.close(() => resolve(null)))
  })
}
