/** What a guard knows about its attempt, for the core. */
import { MEMORY_LIMIT_REACHED } from '../../protocol/resource-limits.ts'
import { constants } from 'node:os'
import type { AttemptStart } from '../core/attempt-start.ts'
import type { AttemptEnd } from '../core/device.ts'
import { NEVER_RAN } from '../core/finished.ts'
import type { GuardedTask } from '../guard/guards.ts'

/** Returns what this server gave the guard at launch. */
export function startIn({ record, taskId, attempt }: GuardedTask): AttemptStart | null {
  if (typeof record !== 'object' || record === null) return null
  const start = record as AttemptStart
  return start.taskId === taskId && start.attempt === attempt && Array.isArray(start.gpus) ? start : null
}

const SIGNAL_EXIT = 128

export function endOf({ exit, didLeaseEnd, wasOrdered, neverRan, ...task }: GuardedTask): AttemptEnd {
  if (exit === null || (exit.code === null && exit.signal === null)) {
    return {
      exitCode: null,
      detail: didLeaseEnd ? 'the run lease had ended' : 'its guard is gone',
      didEndItself: false,
      didLeaseEnd,
    }
  }
  const didEndItself = wasOrdered !== true
  const exitCode = exit.code ?? SIGNAL_EXIT + (constants.signals[exit.signal as NodeJS.Signals] ?? 0)
  if (didEndItself && !didLeaseEnd && exitCode !== 0 && task.didReachMemoryLimit === true)
    return { exitCode, detail: MEMORY_LIMIT_REACHED, didEndItself, didLeaseEnd }
  if (exit.signal === null) return { exitCode: exit.code, detail: null, didEndItself, didLeaseEnd }
  const detail = neverRan === true ? NEVER_RAN : `signal ${exit.signal}`
  // An earlier guard does not record whether it sent SIGKILL; it sent no other signal.
  return { exitCode, detail, didEndItself: didEndItself && exit.signal !== 'SIGKILL', didLeaseEnd }
}
