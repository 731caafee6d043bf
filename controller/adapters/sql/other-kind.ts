/** The message for a store of another kind: what it holds, and both options. */
import type { StoreKind } from '../../model/store-kind.ts'

const HOLDS: Readonly<Record<StoreKind, string>> = {
  live: 'a live cluster',
  trial: 'a trial cluster (simulated servers over a broker)',
  simulated: 'a simulated cluster',
}

const GO_ON: Readonly<Record<StoreKind, string>> = {
  live: 'set CONTROLLER_NATS_URL and leave CONTROLLER_STORE_KIND unset to continue with it',
  trial: 'set CONTROLLER_NATS_URL and CONTROLLER_STORE_KIND=trial to continue with it',
  simulated: 'unset CONTROLLER_NATS_URL to continue with it',
}

export function otherKind(store: string, kept: StoreKind, wanted: StoreKind): string {
  return (
    `${store} holds ${HOLDS[kept]}: ${GO_ON[kept]}, or use another data directory ` +
    `(CONTROLLER_DATA_DIR) for ${HOLDS[wanted]}`
  )
}
