import { readFileSync } from 'node:fs'

/**
 * CLOCK_BOOTTIME in whole ms, to 10 ms: monotonic time of the host, which includes suspension. Guards compare
 * leases with it.
 */
export function bootTime(): number {
  return Math.round(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000)
}
