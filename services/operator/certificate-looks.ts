/** Looks of a component at its certificates: at its start, and each minute. */
import { setTimeout as pause } from 'node:timers/promises'
import type { OwnCertificates } from '../../operator/adapters/own-certificates.ts'
import { errorText } from '../../protocol/error-text.ts'
import type { DurationMs } from '../../protocol/units.ts'

/** Resolves with null when it failed. */
export type Look = () => Promise<OwnCertificates | null>

interface LookListener {
  readonly onNote: (line: string) => void
  readonly onFault: () => void
  readonly onFound: (found: OwnCertificates) => void
}

const LOOK_EVERY_MS = 60_000
const RETRY_MS = 2_000

/** A look that fails is noted once, until one succeeds or fails for another reason. */
export function certificateLook(
  look: () => Promise<OwnCertificates>,
  { onNote, onFault, onFound }: LookListener,
): Look {
  let noted: string | null = null
  return async () => {
    try {
      const found = await look()
      onFound(found)
      noted = null
      return found
    } catch (error) {
      onFault()
      const text = errorText(error)
      if (text !== noted) onNote(`the certificates cannot be stored: ${text}`)
      noted = text
      return null
    }
  }
}

/** Null: it was stopped before. */
export async function firstCertificates(look: Look, signal: AbortSignal): Promise<OwnCertificates | null> {
  while (!signal.aborted) {
    const found = await look()
    if (found !== null) return found
    await pause(RETRY_MS, undefined, { signal }).catch(() => {})
  }
  return null
}

/** Until the signal. `renew` is called for each new certificate. */
export async function keepLooking(
  look: Look,
  first: OwnCertificates,
  {
    signal,
    lookEveryMs = LOOK_EVERY_MS,
  }: { readonly signal: AbortSignal; readonly lookEveryMs?: DurationMs },
  renew: (found: OwnCertificates) => void,
): Promise<void> {
  let served = first
  for (;;) {
    await pause(lookEveryMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) return
    const found = await look()
    if (found === null || (found.cert === served.cert && found.authorities === served.authorities)) continue
    renew(found)
    served = found
  }
}
