/** Processes of simulations give way to the controller, which decides and answers. */
import { readdirSync, writeFileSync } from 'node:fs'
import { setPriority } from 'node:os'

/**
 * Of this process. Linux counts threads: those that V8 has begun already to collect garbage and to compile
 * are told one by one, and those that come later are as the one that begins them. Where memory runs out on
 * Linux this process goes, and not the controller.
 */
export function lowerPriority(niceness: number): void {
  if (process.platform !== 'linux') return permitted(() => setPriority(0, niceness))
  permitted(() => writeFileSync('/proc/self/oom_score_adj', OOM_SCORE))
  permitted(() => {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), niceness)
  })
}

/** A run: the last to get a core. */
export const NICE_RUN = 19
/** Somebody waits for it. */
export const NICE_ASKED = 5

const OOM_SCORE = '1000'

/** A container may forbid it; the simulation is then only less polite. */
function permitted(act: () => void): void {
  try {
    act()
  } catch {
    return
  }
}
