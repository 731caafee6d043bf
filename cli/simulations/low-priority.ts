/** Threads of simulations give way to the thread that decides and answers. */
import { setPriority } from 'node:os'

/** Of this thread alone. Linux counts threads; elsewhere the call would mean the whole process. */
export function givesWay(niceness: number): void {
  if (process.platform !== 'linux') return
  try {
    setPriority(0, niceness)
  } catch {
    // A container may forbid it; the simulation is then only less polite.
  }
}

/** A run: the last to get a core. */
export const NICE_RUN = 19
/** Somebody waits for it. */
export const NICE_ASKED = 5
