/** The time zone of all times on the page: local or UTC, kept in this browser; always UTC in a session. */
import { createRoot, createSignal, onCleanup, onMount } from 'solid-js'

export type Zone = 'local' | 'utc'
const KEY = 'headroom-zone'

const [chosen, setChosen] = createRoot(() => createSignal<Zone>(stored()))
const [isVirtual, setVirtual] = createRoot(() => createSignal(false))

export const zone = (): Zone => (isVirtual() ? 'utc' : chosen())

/** A virtual clock has no local time. */
export const isZoneFixed = isVirtual

export function chooseZone(next: Zone): void {
  localStorage.setItem(KEY, next)
  setChosen(next)
}

/** While the component is shown, all times are of a virtual clock. */
export function useVirtualTime(): void {
  onMount(() => setVirtual(true))
  onCleanup(() => setVirtual(false))
}

function stored(): Zone {
  // Outside of a browser there is no storage.
  return typeof localStorage !== 'undefined' && localStorage.getItem(KEY) === 'utc' ? 'utc' : 'local'
}
