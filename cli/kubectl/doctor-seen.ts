import { KubeError, NOT_FOUND } from '../../operator/ports/kube-api.ts'
import { type Check, warn } from '../doctor/check.ts'

export type Seen<T> =
  | { readonly kind: 'found'; readonly value: T }
  | { readonly kind: 'absent' }
  | { readonly kind: 'denied'; readonly check: (name: string) => Check }

/** Objects that the user may not read are reported on a line of their own and are not a fault. */
export async function seen<T>(read: () => Promise<T>): Promise<Seen<T>> {
  try {
    return { kind: 'found', value: await read() }
  } catch (error) {
    if (!(error instanceof KubeError)) throw error
    if (error.code === NOT_FOUND) return { kind: 'absent' }
    if (error.code === 401 || error.code === 403)
      return { kind: 'denied', check: (name) => warn(name, `not checked: ${error.message}`, null) }
    throw error
  }
}
