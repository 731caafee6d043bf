/** Values of options that are also environment variables, which define what is valid. */
import { InvalidArgumentError } from 'commander'
import type { Mib } from '../../protocol/units.ts'
import { ENVIRONMENT } from '../../services/settings/env-table.ts'

/** Ports of proxies: `30100-30199`. */
export function proxyPorts(text: string): { readonly from: number; readonly to: number } {
  const range = ENVIRONMENT.proxyPorts.read(text)
  if (range !== undefined) return range
  throw new InvalidArgumentError(`It must be ${ENVIRONMENT.proxyPorts.range}.`)
}

export function swapArenaSize(text: string): Mib {
  const size = ENVIRONMENT.swapArena.read(text)
  if (size !== undefined) return size
  throw new InvalidArgumentError(`It must be ${ENVIRONMENT.swapArena.range}.`)
}

export function proxyAddress(text: string): string {
  const address = ENVIRONMENT.proxyAddress.read(text)
  if (address !== undefined) return address
  throw new InvalidArgumentError(`It must be ${ENVIRONMENT.proxyAddress.range}.`)
}
