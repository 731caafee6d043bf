/**
 * Work in a task's own command: `headroom work busy=10s idle=20s busy=5s`. A simulated server reads it from
 * the command, a real one runs the command with the same phases (cli/gpu-server/work.ts), so one task can run
 * on both.
 */
import type { DurationMs } from '../../protocol/units.ts'
import { parseDuration } from '../document/quantity.ts'
import type { Work } from '../trace/trace-format.ts'
import { planOf, type WorkPlan } from './work-plan.ts'
import type { Workload } from './workload.ts'

/** Maximum number of phases in one command. */
const MAX_PHASES = 200
const VERB = 'work'

export type WorkPhase = { readonly kind: 'busy' | 'idle'; readonly ms: DurationMs }

const WORK_FORMAT =
  `busy=TIME and idle=TIME in any order, ${MAX_PHASES} at most ` + '(busy=10s idle=2m busy=10s)'

/** The phases in order; a string describes an error. */
export function parseWork(steps: readonly string[]): readonly WorkPhase[] | string {
  if (steps.length === 0 || steps.length > MAX_PHASES)
    return `${steps.length} phases; it must be ${WORK_FORMAT}`
  const phases: WorkPhase[] = []
  for (const step of steps) {
    const match = /^(busy|idle)=(.*)$/.exec(step)
    const ms = parseDuration(match?.[2] ?? '')
    if (match === null || ms === null)
      return `'${step.slice(0, 80)}' is not a phase; it must be ${WORK_FORMAT}`
    phases.push({ kind: match[1] as WorkPhase['kind'], ms })
  }
  return phases
}

/** The work of `… work busy=… idle=…`, with any prefix before `work`; null for another command. */
export function workOfCommand(command: readonly string[] | null): Work | null {
  const at = command?.indexOf(VERB) ?? -1
  if (command === null || at < 0) return null
  const phases = parseWork(command.slice(at + 1))
  return typeof phases === 'string'
    ? null
    : { kind: 'phases', phases: phases.map(({ kind, ms }) => (kind === 'busy' ? [ms, 0] : [0, ms])) }
}

/** Uses its VRAM without GPU work, for longer than any run. */
const LEASE: WorkPlan = { kind: 'bursts', at: [], stayMs: 315_360_000_000 }

/**
 * The work of tasks of any origin: that of their command; a lease only uses its VRAM; any other command does
 * `otherwise`.
 */
export class CommandWorkload implements Workload {
  readonly #otherwise: WorkPlan

  constructor(otherwise: Work) {
    this.#otherwise = planOf(otherwise)
  }

  planOf(_taskId: string, command: readonly string[] | null): WorkPlan {
    if (command === null) return LEASE
    const work = workOfCommand(command)
    return work === null ? this.#otherwise : planOf(work)
  }

  allocStepsOf(): readonly [] {
    return NO_STEPS
  }
}

const NO_STEPS = [] as const
