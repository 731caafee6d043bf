/** Actions of the cluster's timers, so that a restored snapshot can set the timers again. */
import type { TimerRestorer } from '../state/snapshot/parts.ts'
import { endStartWait } from '../state/placement-pause.ts'
import { openTrial } from './apply/lifecycle/auto-cordon.ts'
import { runProbe } from './apply/lifecycle/probes.ts'
import { overrun } from './apply/lifecycle/runtime-limits.ts'
import { nextTry } from './apply/lifecycle/start-tries.ts'
import { requestEagerCheck } from './apply/vram/eager-returns.ts'
import { revisitQueue } from './apply/vram/node-queue.ts'
import { beginMoving } from './inputs/commands/drain.ts'

export const TIMERS: Omit<TimerRestorer, 'wake'> = {
  ofNode: {
    cancelDrain: beginMoving,
    cancelTrial: openTrial,
    cancelWake: revisitQueue,
    cancelEager: requestEagerCheck,
  },
  probe: runProbe,
  start: nextTry,
  runtime: overrun,
  startWait: endStartWait,
}
