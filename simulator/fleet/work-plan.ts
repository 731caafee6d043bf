/** A task's work in the form that a device executes. */
import type { DurationMs } from '../../protocol/units.ts'
import type { Work } from '../trace/trace-format.ts'

type Phased = Extract<Work, { kind: 'phases' }>

/**
 * As `Work`; phases are one list of alternating GPU work and idle times, which exists as long as the task and
 * is therefore compact.
 */
export type WorkPlan =
  Exclude<Work, Phased> | { readonly kind: 'steps'; readonly steps: readonly DurationMs[] }

export function planOf(work: Work): WorkPlan {
  if (work.kind !== 'phases') return work
  const { phases } = work
  const steps = new Array<DurationMs>(2 * phases.length)
  for (let at = 0; at < phases.length; at++) {
    const [busyMs, idleMs] = phases[at] as Phased['phases'][number]
    steps[2 * at] = busyMs
    steps[2 * at + 1] = idleMs
  }
  return { kind: 'steps', steps }
}

export function workOf(plan: WorkPlan): Work {
  return plan.kind === 'steps' ? { kind: 'phases', phases: phasesFrom(plan.steps, 0) } : plan
}

/** The phases from that step on, which is GPU work. */
export function phasesFrom(steps: readonly DurationMs[], from: number): [DurationMs, DurationMs][] {
  const phases: [DurationMs, DurationMs][] = []
  for (let at = from; at < steps.length; at += 2)
    phases.push([steps[at] as DurationMs, steps[at + 1] as DurationMs])
  return phases
}
