/** The kind of a store, so that a demonstration and a production cluster never mix (docs/decisions/0074). */
import type { DeviceKind } from '../../protocol/units.ts'

/**
 * `live`: GPU servers over a broker. `trial`: simulated servers over a broker. `simulated`: a fleet inside
 * the controller.
 */
export const STORE_KINDS = ['live', 'trial', 'simulated'] as const
export type StoreKind = (typeof STORE_KINDS)[number]

export type RefusedDevice = 'simulated_in_live' | 'nvidia_in_trial'

/**
 * Returns why a server with this device may not join a controller with this kind of store; null if it may.
 */
export function refusedDevice(kind: StoreKind, device: DeviceKind): RefusedDevice | null {
  if (kind === 'live' && device === 'simulated') return 'simulated_in_live'
  return kind === 'trial' && device === 'nvidia' ? 'nvidia_in_trial' : null
}
