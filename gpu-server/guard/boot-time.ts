import { readFileSync } from 'node:fs'

/**
 * CLOCK_BOOTTIME in whole ms, to 10 ms: the host's monotonic time, which goes on while it is suspended.
 * Guards compare leases with it.
 */
export function bootTime(): number {
  return Math.round(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * 1000)
}
