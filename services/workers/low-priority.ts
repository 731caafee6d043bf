/** Simulations have lower priority than the controller, which decides and answers. */
import { readdirSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Sets the priority of this process. Linux sets it per thread: V8's existing threads for garbage collection
 * and compilation are set one by one, and later threads inherit it. When memory runs out, Linux ends this
 * process and not the controller.
 */
export function lowerPriority(niceness: number): void {
  if (process.platform !== 'linux') return permitted(() => setPriority(0, niceness))
  permitted(() => writeFileSync('/proc/self/oom_score_adj', OOM_SCORE))
  permitted(() => {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), niceness)
  })
}

/** Sets the priority of the calling thread only. Other systems than Linux know no priority of a thread. */
export function lowerThreadPriority(niceness: number): void {
  if (process.platform === 'linux') permitted(() => setPriority(CALLING_THREAD, niceness))
}

const CALLING_THREAD = 0

/** A run: the last to get a core. */
export const NICE_RUN = 19
/** A user waits for the result. */
export const NICE_ASKED = 5

const OOM_SCORE = '1000'

/** A container may forbid it; the simulation then runs at normal priority. */
function permitted(act: () => void): void {
  try {
    act()
  } catch {
    return
  }
}
