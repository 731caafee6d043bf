/** What a process of this machine uses, from /proc. */
import { readFileSync } from 'node:fs'
import type { DurationMs, Mib } from '../../protocol/units.ts'

/** Of /proc/PID/stat: 100 per second on every Linux. */
const CLOCK_TICK_MS: DurationMs = 10

/** All its threads, user and system time. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ')
  return CLOCK_TICK_MS * (Number(fields[11]) + Number(fields[12]))
}

/** Resident memory now, and the most so far. */
export function residentMib(pid: number): { readonly now: Mib; readonly peak: Mib } {
  const text = readFileSync(`/proc/${pid}/status`, 'utf8')
  const mib = (field: string): Mib =>
    Math.round(Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)?.[1] ?? 0) / 1024)
  return { now: mib('VmRSS'), peak: mib('VmHWM') }
}
